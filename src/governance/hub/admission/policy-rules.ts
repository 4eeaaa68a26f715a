// The rules of upstream's webhook, and other rules that need the object only.
import {
  CONFIGURATION_POLICIES,
  duplicate,
  invalid,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  own,
  required,
  textOf,
} from '../../../resources/index.ts';
import { hasUniqueNames } from '../../dependencies/index.ts';
import { copyName } from '../../targets/policy-copy.ts';
import type { GovernanceError, GovernanceWarning } from './write-findings.ts';
import { objectIn } from '../../../values/index.ts';

/** Upstream's message. */
const REMEDIATION_UNSET = 'RemediationAction field of the policy and policy template cannot both be unset';
const REMEDIATION_FIELD = 'spec.remediationAction';

/** Errors of a new Policy. */
export function newPolicyErrors(policy: JsonObject): readonly GovernanceError[] {
  return [...nameErrors(policy), ...remediationErrors(policy)];
}

/** Warnings about a changed Policy: upstream checks new ones only. */
export function changedPolicyWarnings(policy: JsonObject): readonly GovernanceWarning[] {
  return remediationErrors(policy).map(({ field }) => ({
    code: 'remediation-action',
    field,
    text: REMEDIATION_UNSET,
  }));
}

/** Warnings about the names of the templates of a Policy. */
export function templateNameWarnings(policy: JsonObject): readonly GovernanceWarning[] {
  const text = 'All policy-template names must be unique within a policy';
  return hasUniqueNames(templatesOf(policy)) ? [] : [{ code: 'template-name', field: 'spec.policy-templates', text }];
}

/** Errors of a PolicySet: it must exclude only Policies that it lists, each once. */
export function policySetErrors(set: JsonObject): readonly GovernanceError[] {
  const spec = objectIn(set, 'spec');
  const policies = new Set(listIn(spec, 'policies').map((name) => textOf(name)));
  const seen = new Set<string>();
  return listIn(spec, 'exclusions').flatMap((exclusion, index): readonly GovernanceError[] => {
    const name = textOf(isJsonObject(exclusion) ? own(exclusion, 'policyName') : undefined);
    const field = `spec.exclusions[${index}].policyName`;
    const isTwice = seen.has(name);
    seen.add(name);
    return [
      ...(isTwice ? [{ code: 'set-exclusions', ...duplicate(field, name) } as const] : []),
      ...(policies.has(name)
        ? []
        : [
            {
              code: 'set-exclusions',
              ...invalid(field, name, 'policy in spec.exclusions is not listed in spec.policies'),
            } as const,
          ]),
    ];
  });
}

/** The object definitions of a Policy. */
export function templatesOf(policy: JsonObject): readonly JsonObject[] {
  return listIn(objectIn(policy, 'spec'), 'policy-templates').map((template) =>
    objectIn(isJsonObject(template) ? template : {}, 'objectDefinition'),
  );
}

export function listIn(object: JsonObject, field: string): readonly JsonValue[] {
  const value = own(object, field);
  return Array.isArray(value) ? value : [];
}

/** Upstream allows 62 characters, because the name of a copy is the value of a label there. */
function nameErrors(policy: JsonObject): readonly GovernanceError[] {
  const [namespace, name] = ['namespace', 'name'].map((field) => textOf(own(objectIn(policy, 'metadata'), field)));
  return copyName({ namespace: namespace ?? '', name: name ?? '' }) !== undefined
    ? []
    : [
        {
          code: 'name-too-long',
          reason: 'FieldValueTooLong',
          field: 'metadata.name',
          message: 'Too long: the combined length of the policy namespace and name cannot exceed 252 characters',
        },
      ];
}

function remediationErrors(policy: JsonObject): readonly GovernanceError[] {
  if (textOf(own(objectIn(policy, 'spec'), 'remediationAction')) !== '') {
    return [];
  }
  const index = templatesOf(policy).findIndex(
    (definition) =>
      own(definition, 'kind') === CONFIGURATION_POLICIES.kind &&
      typeof own(objectIn(definition, 'spec'), 'remediationAction') !== 'string',
  );
  const field = index === -1 ? '' : `spec.policy-templates[${index}].objectDefinition.${REMEDIATION_FIELD}`;
  return index === -1 ? [] : [{ code: 'remediation-action', ...required(field, REMEDIATION_UNSET) }];
}
