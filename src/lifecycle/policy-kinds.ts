import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  type AdmissionPolicyObject,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  type ResourceType,
} from '../resources/index.ts';
import type { WebhookConfiguration } from './webhooks/webhook-object.ts';

export const POLICY_KINDS: readonly ResourceType<AdmissionPolicyObject>[] = [
  CLUSTER_ADMISSION_POLICIES,
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  ADMISSION_POLICY_GROUPS,
];

const ADMISSION = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false } as const;

export const VALIDATING_WEBHOOKS: ResourceType<WebhookConfiguration> = {
  ...ADMISSION,
  resource: 'validatingwebhookconfigurations',
  kind: 'ValidatingWebhookConfiguration',
};

export const MUTATING_WEBHOOKS: ResourceType<WebhookConfiguration> = {
  ...ADMISSION,
  resource: 'mutatingwebhookconfigurations',
  kind: 'MutatingWebhookConfiguration',
};
