// Compares the operations of a policy's rules with expressions that fail where there is no object, and their resources with those
// that fail where there is no namespace.
import type { NullRead } from '../../engine/index.ts';
import { type AdmissionPolicySpec, allBuiltinKinds, forbidden, splitResource } from '../../resources/index.ts';
import { listed } from '../../values/index.ts';
import type { Findings } from './findings.ts';

type Rules = AdmissionPolicySpec['rules'];

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;
/** The operations on which API servers send no such object. */
const NULL_ON: Readonly<Record<'object' | 'oldObject', readonly string[]>> = {
  object: ['DELETE'],
  oldObject: ['CREATE', 'CONNECT'],
};
const ALL = '*';
const MAX_LISTED = 5;

/** Expressions whose failure rejects requests. */
export interface FailingReads {
  /** Path of what contains the expressions. */
  readonly field: string;
  readonly reads: readonly NullRead[];
  /** Whether a failure is always a rejection. Not so in a member of a group, whose expression may admit in spite of it. */
  readonly isDecisive: boolean;
}

/** Refuses policies that would reject every request; warns of those that would reject every request of some kind. */
export function checkNullReads(
  { field: parent, reads, isDecisive }: FailingReads,
  rules: Rules,
  findings: Findings,
): void {
  for (const { variable, field } of reads) {
    const failing = variable === 'namespaceObject' ? withoutNamespace(rules) : withoutObject(variable, rules);
    if (failing === undefined) {
      continue;
    }
    const { names, when, isAll } = failing;
    const text = `always reads a field of ${variable}, which is null ${when}: every such request would be rejected. Read it only where ${variable} != null, or remove ${names} from the rules`;
    if (isAll && isDecisive) {
      findings.reject('null-object', forbidden(`${parent}.${field}`, text));
    } else {
      findings.warn('null-object', `${parent}.${field}`, text);
    }
  }
}

/** Requests of the rules for which a variable is null. */
interface Failing {
  readonly names: string;
  /** `on DELETE` */
  readonly when: string;
  /** Whether there are no others. */
  readonly isAll: boolean;
}

function withoutObject(variable: 'object' | 'oldObject', rules: Rules): Failing | undefined {
  const operations = operationsOf(rules);
  const failing = operations.filter((operation) => NULL_ON[variable].includes(operation));
  const names = failing.join(' and ');
  return failing.length === 0 ? undefined : { names, when: `on ${names}`, isAll: failing.length === operations.length };
}

function operationsOf(rules: Rules): readonly string[] {
  const named = new Set<string>(rules.flatMap(({ operations }) => operations));
  return OPERATIONS.filter((operation) => named.has(ALL) || named.has(operation));
}

/** Objects outside of namespaces, and namespaces themselves. The scope of custom resources is not known here. */
function withoutNamespace(rules: Rules): Failing | undefined {
  const resources = rules.flatMap((rule) =>
    rule.resources.map((text) => ({ text, isCluster: isClusterScoped(rule, text) })),
  );
  const failing = resources.filter(({ isCluster }) => isCluster !== false && isCluster !== undefined);
  const names = listed([...new Set(failing.map(({ text }) => text))], MAX_LISTED);
  const when = `for what is in no namespace, and for namespaces themselves`;
  const isAll = resources.every(({ isCluster }) => isCluster === true);
  return failing.length === 0 ? undefined : { names, when, isAll };
}

/** Undefined if it is not known. */
function isClusterScoped({ apiGroups = [], scope = ALL }: Rules[number], text: string): boolean | 'some' | undefined {
  if (scope !== ALL) {
    return scope === 'Cluster';
  }
  const [name, subresource] = splitResource(text);
  if (name === ALL) {
    return subresource === '' || subresource === ALL ? 'some' : undefined;
  }
  const kinds = allBuiltinKinds().filter(
    ({ group, resource }) => resource === name && (apiGroups.includes(group) || apiGroups.includes(ALL)),
  );
  return kinds.length === 0 ? undefined : kinds.every(({ namespaced }) => !namespaced);
}
