// Types of a policy's expressions for objects of one kind.
import { CelError, DYN } from '../../cel/index.ts';
import type { CelIssue, CelType, InferredType } from '../../cel/index.ts';
import type { ServedResource } from '../../resources/index.ts';
import type { PolicyEnvironments } from '../cel-policy/policy-environment.ts';
import { type Known, KnownValues } from './known-values.ts';
import { failsAlways, isNeverTrue } from './never-succeeds.ts';
import { type Reachability, reachability } from './reachability.ts';
import type { TypedExpression } from './typed-expressions.ts';

/** An expression with its errors for objects of one kind. */
export interface InferredExpression {
  readonly expression: TypedExpression;
  readonly issues: readonly CelIssue[];
  readonly reach: Reachability;
  /** Whether its evaluation fails for every object of the kind, because of a field that the kind does not have, or a value of another type. */
  readonly isFailing: boolean;
  /** Whether it fails, or is false because an operand fails or has another type, for every object of the kind. */
  readonly isNeverTrue: boolean;
}

/** How messages of the type checker begin. */
const UNDEFINED_FIELD = 'undefined field ';
const NO_OVERLOAD = 'found no matching overload for ';

/** The types of two values that are never equal if they differ. Empty lists are, and numbers of different types. */
const COMPARED = /applied to '\((int|uint|double|string|bool|timestamp), (int|uint|double|string|bool|timestamp)\)'/;
const NUMBERS: ReadonlySet<string> = new Set(['int', 'uint', 'double']);

const WHOLE: Reachability = { dead: new Set(), chosen: new Set(), tests: new Set() };

/** Checks expressions in order, so that types and values of variables are known to later ones. */
export function inferAll(
  expressions: readonly TypedExpression[],
  environments: PolicyEnvironments,
  kind?: ServedResource,
): readonly InferredExpression[] {
  const variables = new Map<string, CelType>();
  const failing = new Set<string>();
  const reads = new Map<string, Known>(kind === undefined ? [] : readsOf(kind));
  return expressions.map((expression) => {
    const { text, scope, variable } = expression;
    const inferred = inferType(text, scope, variables, environments);
    if (inferred === undefined) {
      return { expression, issues: [], reach: WHOLE, isFailing: false, isNeverTrue: false };
    }
    const { type, issues, expression: root } = inferred;
    const absent = idsOf(issues, (message) => message.startsWith(UNDEFINED_FIELD));
    const values = new KnownValues(root, reads, absent);
    const reach = reachability(root, values, new KnownValues(root, reads));
    const mismatches = idsOf(issues, isMismatch).difference(reach.dead);
    const fails = failsAlways({ undefinedFields: absent.difference(reach.dead), mismatches }, failing);
    const isFailing = fails(root);
    if (variable !== undefined) {
      if (isFailing) {
        failing.add(variable);
      }
      variables.set(variable, type.kind === 'error' ? DYN : type);
      reads.set(`variables.${variable}`, values.of(root));
    }
    return { expression, issues, reach, isFailing, isNeverTrue: isNeverTrue(root, fails, mismatches) };
  });
}

/** Undefined where an expression does not parse, which is reported where the policy is compiled. */
function inferType(
  text: string,
  scope: TypedExpression['scope'],
  variables: ReadonlyMap<string, CelType>,
  environments: PolicyEnvironments,
): InferredType | undefined {
  try {
    return environments.inferType(text, scope, variables);
  } catch (error) {
    if (error instanceof CelError) {
      return undefined;
    }
    throw error;
  }
}

/** What expressions read of the kind. Requests name that of the request, or with matchPolicy Equivalent that of the rule. */
function readsOf({ group, version, kind, resource }: ServedResource): readonly (readonly [string, string])[] {
  const apiVersion = group === '' ? version : `${group}/${version}`;
  return [
    ...['object', 'oldObject', 'request.object', 'request.oldObject'].flatMap(
      (object) =>
        [
          [`${object}.kind`, kind],
          [`${object}.apiVersion`, apiVersion],
        ] as const,
    ),
    ['request.kind.kind', kind],
    ['request.kind.group', group],
    ['request.resource.resource', resource],
    ['request.resource.group', group],
  ];
}

/** The nodes that have issues with such messages. */
function idsOf(issues: readonly CelIssue[], isMeant: (message: string) => boolean): ReadonlySet<number> {
  return new Set(issues.flatMap(({ message, expressionId }) => (isMeant(message) ? (expressionId ?? []) : [])));
}

/** A call with values of other types; of comparisons for equality only one whose result is certain. */
function isMismatch(message: string): boolean {
  if (!message.startsWith(`${NO_OVERLOAD}'_==_'`)) {
    return message.startsWith(NO_OVERLOAD);
  }
  const [, one = '', other = ''] = COMPARED.exec(message) ?? [];
  return one !== '' && !(NUMBERS.has(one) && NUMBERS.has(other));
}
