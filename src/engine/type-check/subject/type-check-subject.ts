import { type AdmissionPolicySpec, isGroupSpec } from '../../../resources/index.ts';
import { parseJson, textOf, valueAt } from '../../../values/index.ts';
import type { PolicyDefinition } from '../../definition/policy-definition.ts';
import type { CheckedParameters, TypeCheckSubject } from '../check-policy-types.ts';

const CEL = 'builtin:cel';

/** What of a policy's spec has types. */
export function subjectOfSpec(spec: AdmissionPolicySpec): TypeCheckSubject {
  const uses = isGroupSpec(spec)
    ? Object.entries(spec.policies).map(([name, member]) => ({
        field: `spec.policies[${name}]`,
        ...member,
      }))
    : [{ ...spec, field: 'spec' }];
  return {
    rules: spec.rules,
    conditions: spec.matchConditions ?? [],
    uses: uses
      .filter(({ module }) => module.trim() === CEL)
      .map(({ field, settings }) => ({ field: `${field}.settings`, settings: settings ?? {} })),
    parameters: uses.flatMap(({ field, parameters }) => parametersOf(`${field}.parameters`, parameters)),
  };
}

/** The expression for parameters that are objects; those of namespaces have no kind. */
function parametersOf(field: string, parameters: unknown): readonly CheckedParameters[] {
  const kindOf = (key: string): string => textOf(valueAt(parameters, 'from', 'resource', key));
  const checked = {
    field: `${field}.settingsExpression`,
    expression: textOf(valueAt(parameters, 'settingsExpression')),
    apiVersion: kindOf('apiVersion'),
    kind: kindOf('kind'),
  };
  return checked.expression === '' || checked.kind === '' ? [] : [checked];
}

/** What of an entry of a policies file has types. It has no rules of its own. */
export function subjectOfDefinition(definition: PolicyDefinition, rules: TypeCheckSubject['rules']): TypeCheckSubject {
  const uses =
    definition.kind === 'group'
      ? definition.members.map((member) => ({ ...member, field: `policies.${member.name}.` }))
      : [{ ...definition, field: '' }];
  return {
    rules,
    conditions: [],
    uses: uses
      .filter(({ module }) => module.trim() === CEL)
      .map(({ field, settingsJson }) => ({ field: `${field}settings`, settings: parseJson(settingsJson) })),
    parameters: uses.flatMap(({ field, parameters }) => parametersOf(`${field}parameters`, parameters)),
  };
}
