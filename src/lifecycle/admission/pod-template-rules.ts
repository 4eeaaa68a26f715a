// Checks of `spec.podTemplates`.
import {
  type AdmissionPolicyObject,
  forbidden,
  podTemplatesAction,
  policyMatch,
  usesAuthorizer,
  webhookMatches,
} from '../../resources/index.ts';
import type { Findings } from './findings.ts';

const FIELD = 'spec.podTemplates';

export function checkPodTemplates(policy: AdmissionPolicyObject, findings: Findings): void {
  const { spec } = policy;
  if (podTemplatesAction(spec) === undefined) {
    return;
  }
  const [, ofWorkloads] = webhookMatches(policyMatch(policy, { productNamespace: '', ownWebhook: false }));
  if (ofWorkloads === undefined) {
    const detail = 'no rule matches the creation of pods (v1), so no pod template is checked';
    findings.warn('pod-templates', FIELD, detail);
  }
  if ((spec.matchConditions ?? []).some(({ expression }) => usesAuthorizer(expression))) {
    const detail =
      'match conditions with authorizer are evaluated by API servers, and only for the pods: remove the field, or the condition';
    findings.reject('pod-templates', forbidden(FIELD, detail));
  }
}
