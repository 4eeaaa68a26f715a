// Warnings about templates of a Policy that can never be resolved.
import {
  CONFIGURATION_POLICIES,
  GOVERNANCE_ANNOTATIONS,
  GOVERNANCE_GROUP,
  groupVersionOf,
  type JsonObject,
  own,
  textOf,
} from '../../../resources/index.ts';
import { hubTemplateRefusal } from '../../evaluation/hub-templates-evaluation.ts';
import { hasHubTemplates, TemplateChecks } from '../../templates/index.ts';
import { unsupportedKind } from '../../policy/unsupported-kinds.ts';
import { templatesOf } from './policy-rules.ts';
import type { GovernanceWarning } from './write-findings.ts';
import { objectIn } from '../../../values/index.ts';

/** Warnings about the templates of a Policy. */
export function policyTemplateWarnings(policy: JsonObject): readonly GovernanceWarning[] {
  const isHubResolved = !isLiteral(policy);
  const account = textOf(own(objectIn(objectIn(policy, 'spec'), 'hubTemplateOptions'), 'serviceAccountName'));
  const checks = new TemplateChecks();
  return templatesOf(policy).flatMap((definition, index): readonly GovernanceWarning[] => {
    const field = `spec.policy-templates[${index}].objectDefinition`;
    const unsupported = unsupportedKind(textOf(own(definition, 'apiVersion')), textOf(own(definition, 'kind')));
    if (unsupported !== undefined) {
      return [{ code: 'template-kind', field: `${field}.kind`, text: unsupported }];
    }
    const refusal = isHubResolved && hasHubTemplates(definition) ? hubTemplateRefusal(definition, account) : undefined;
    return refusal === undefined
      ? definitionWarnings(definition, `${field}.`, isHubResolved, checks)
      : [{ code: 'hub-template', field, text: refusal }];
  });
}

/** Warnings about the templates of a ConfigurationPolicy. */
export function configurationTemplateWarnings(policy: JsonObject): readonly GovernanceWarning[] {
  return definitionWarnings(policy, '', false, new TemplateChecks());
}

function definitionWarnings(
  definition: JsonObject,
  field: string,
  hub: boolean,
  checks: TemplateChecks,
): readonly GovernanceWarning[] {
  const { group } = groupVersionOf(textOf(own(definition, 'apiVersion')));
  const isConfiguration = group === GOVERNANCE_GROUP && own(definition, 'kind') === CONFIGURATION_POLICIES.kind;
  // `customMessage` has templates, too, but they are resolved with other functions and values.
  const spec = objectIn(definition, 'spec');
  const ofCluster = isConfiguration && !isLiteral(definition) ? objectTemplatesOf(spec) : {};
  return [
    ...(hub ? checks.problems(definition, { hub, managed: false }) : []),
    ...checks.problems({ spec: ofCluster }, { hub: false, managed: true }),
  ].map(({ path, message }) => ({ code: 'template', field: `${field}${path}`, text: message }));
}

function objectTemplatesOf(spec: JsonObject): JsonObject {
  return Object.fromEntries(
    ['object-templates', 'object-templates-raw'].flatMap((field) => {
      const value = own(spec, field);
      return value === undefined ? [] : [[field, value] as const];
    }),
  );
}

function isLiteral(object: JsonObject): boolean {
  const annotations = objectIn(objectIn(object, 'metadata'), 'annotations');
  return own(annotations, GOVERNANCE_ANNOTATIONS.disableTemplates) === 'true';
}
