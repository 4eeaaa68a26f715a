// Finds expressions that fail on every request with some operation: API servers give policies no `object` on DELETE, and no
// `oldObject` on CREATE and CONNECT.
import { type Expression, findCertain, type Program, readsField } from '../../cel/index.ts';
import type { CompiledPolicy } from './compiled-policy.ts';
import { fieldOfPatch } from './read-policy.ts';

/** An expression that reads a field of a variable in every evaluation, so that the policy denies while the variable is null. */
export interface NullRead {
  readonly variable: 'object' | 'oldObject' | 'namespaceObject';
  /** Path of the expression in the settings. */
  readonly field: string;
}

type Variable = NullRead['variable'];

/** The first such expression for each variable. Empty if settings may keep requests from the expressions. */
export function nullReads(policy: CompiledPolicy): readonly NullRead[] {
  const { failurePolicy, matchConstraints, paramKind } = policy.spec;
  if (failurePolicy === 'Ignore' || matchConstraints !== undefined || paramKind !== undefined) {
    return [];
  }
  return (['object', 'oldObject', 'namespaceObject'] as const).flatMap((variable) => {
    const fails = failsWithout(variable, policy);
    const [field] = decisive(policy, variable).find(([, program]) => fails(program)) ?? [];
    return field === undefined ? [] : { variable, field };
  });
}

/** The expressions whose failure denies a request, with their paths. */
function decisive(policy: CompiledPolicy, variable: Variable): readonly (readonly [string, Program])[] {
  const { matchConditions, validations, auditAnnotations, mutations } = policy;
  const [condition, ...more] = matchConditions;
  if (condition !== undefined) {
    // Another condition that is false would admit the request in spite of the failure. Of conditions that read namespaceObject,
    // which is null for every request, there is a finding of its own.
    return more.length > 0 || variable === 'namespaceObject'
      ? []
      : [['matchConditions[0].expression', condition.program]];
  }
  return [
    ...validations.map(({ program }, index) => [`validations[${index}].expression`, program] as const),
    ...auditAnnotations.map(({ program }, index) => [`auditAnnotations[${index}].valueExpression`, program] as const),
    // Without an object, mutations are not evaluated.
    ...(variable === 'object' ? [] : mutations).map(
      ({ program, patchType }, index) =>
        [`mutations[${index}].${fieldOfPatch(patchType)}.expression`, program] as const,
    ),
  ];
}

/** A test of expressions: whether they always read a field of a variable, by themselves or in variables of the policy. */
function failsWithout(variable: Variable, { variables }: CompiledPolicy): (program: Program) => boolean {
  const failing = new Set<string>();
  const isFailure = (node: Expression): boolean =>
    readsField(node, variable) || (node.kind === 'select' && readsField(node, 'variables') && failing.has(node.field));
  const fails = ({ checked }: Program): boolean => findCertain(checked.expression, isFailure) !== undefined;
  // Variables use earlier ones only, so each is looked at once.
  for (const [name, program] of variables) {
    if (fails(program)) {
      failing.add(name);
    }
  }
  return fails;
}
