// Compares the operations of a policy's rules with expressions that fail where there is no object.
import type { NullRead } from '../../engine/index.ts';
import { type AdmissionPolicySpec, forbidden } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;
/** The operations on which API servers send no such object. */
const NULL_ON: Readonly<Record<NullRead['variable'], readonly string[]>> = {
  object: ['DELETE'],
  oldObject: ['CREATE', 'CONNECT'],
};

/** Expressions whose failure rejects requests. */
export interface FailingReads {
  /** Path of what contains the expressions. */
  readonly field: string;
  readonly reads: readonly NullRead[];
  /** Whether a failure is always a rejection. Not so in a member of a group, whose expression may admit in spite of it. */
  readonly isDecisive: boolean;
}

/** Refuses policies that would reject every request; warns of those that would reject every request with some operation. */
export function checkNullReads(
  { field: parent, reads, isDecisive }: FailingReads,
  rules: AdmissionPolicySpec['rules'],
  findings: Findings,
): void {
  const operations = operationsOf(rules);
  for (const { variable, field } of reads) {
    const failing = operations.filter((operation) => NULL_ON[variable].includes(operation));
    if (failing.length === 0) {
      continue;
    }
    const names = failing.join(' and ');
    const text = `always reads a field of ${variable}, which is null on ${names}: every such request would be rejected. Read it only where ${variable} != null, or remove ${names} from the rules`;
    if (failing.length === operations.length && isDecisive) {
      findings.reject('null-object', forbidden(`${parent}.${field}`, text));
    } else {
      findings.warn('null-object', `${parent}.${field}`, text);
    }
  }
}

function operationsOf(rules: AdmissionPolicySpec['rules']): readonly string[] {
  const named = new Set<string>(rules.flatMap(({ operations }) => operations));
  return OPERATIONS.filter((operation) => named.has('*') || named.has(operation));
}
