// The expressions of policies with their variables, in the order in which they are compiled.
import { trimSpace } from '../cel-policy/go-space.ts';
import type { ExpressionScope } from '../cel-policy/policy-environment.ts';
import type { PolicySpec } from '../cel-policy/policy-spec.ts';
import { fieldOfPatch } from '../cel-policy/read-policy.ts';

/** An expression of a policy. */
export interface TypedExpression {
  /** Path below the settings, or below the manifest. */
  readonly field: string;
  readonly text: string;
  readonly scope: ExpressionScope;
  /** The variable that it defines. */
  readonly variable?: string;
}

/** Match conditions of webhooks: without parameters and variables. */
const CONDITION_SCOPE: ExpressionScope = {
  hasParams: false,
  hasAuthorizer: true,
  hasVariables: false,
  hasPatchTypes: false,
};

/** The expressions of settings or of a manifest; variables come before what uses them. */
export function expressionsOfPolicy(spec: PolicySpec): readonly TypedExpression[] {
  const root = spec.name === undefined ? '' : 'spec.';
  const scope = { ...CONDITION_SCOPE, hasParams: spec.paramKind !== undefined, hasVariables: true };
  const all = <Spec>(
    specs: readonly Spec[],
    field: string,
    expressions: (one: Spec) => Readonly<Record<string, string>>,
    own: Partial<ExpressionScope> = {},
  ): readonly TypedExpression[] =>
    specs.flatMap((one, index) =>
      Object.entries(expressions(one)).map(([key, text]) => ({
        field: `${root}${field}[${index}].${key}`,
        text: trimSpace(text),
        scope: { ...scope, ...own },
      })),
    );
  const variables = all(spec.variables, 'variables', ({ expression }) => ({ expression }));
  return [
    ...all(spec.matchConditions, 'matchConditions', ({ expression }) => ({ expression }), { hasVariables: false }),
    ...variables.map((one, index) => ({ ...one, variable: spec.variables[index]?.name ?? '' })),
    ...spec.validations.flatMap(({ expression, messageExpression }, index) => [
      { field: `${root}validations[${index}].expression`, text: trimSpace(expression), scope },
      {
        field: `${root}validations[${index}].messageExpression`,
        text: trimSpace(messageExpression),
        scope: { ...scope, hasAuthorizer: false },
      },
    ]),
    ...all(spec.auditAnnotations, 'auditAnnotations', ({ valueExpression }) => ({ valueExpression })),
    ...all(
      spec.mutations,
      'mutations',
      ({ patchType, expression }) => ({ [`${fieldOfPatch(patchType)}.expression`]: expression }),
      { hasPatchTypes: true },
    ),
  ].filter(({ text }) => text !== '');
}

/** The match conditions of a policy's webhook. */
export function expressionsOfConditions(
  conditions: readonly { readonly expression: string }[],
): readonly TypedExpression[] {
  return conditions.map(({ expression }, index) => ({
    field: `matchConditions[${index}].expression`,
    text: expression,
    scope: CONDITION_SCOPE,
  }));
}
