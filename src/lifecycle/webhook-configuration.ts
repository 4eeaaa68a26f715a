// The webhook configuration that makes an API server ask about a policy (contract section 6).
import type { KubernetesObject, ObjectKey } from '../resources/index.ts';
import { isGroup, policyId } from './admission-policy.ts';
import type { AdmissionPolicyObject } from './admission-policy.ts';

/** Found on everything that we write for a policy. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'portcullis' } as const;

export interface WebhookTarget {
  /** Base URL of the policy server's admission port. */
  readonly url: string;
  /** PEM of the CA that its certificate comes from. */
  readonly ca: string;
}

/** Whether the API server asks the policy before objects are complete. */
export function isMutating({ spec }: AdmissionPolicyObject): boolean {
  return !isGroup(spec) && spec.mutating;
}

/** The configuration for one policy, named by its id. */
export function webhookConfiguration(policy: AdmissionPolicyObject, target: WebhookTarget): KubernetesObject {
  const { spec } = policy;
  const id = policyId(policy);
  const { namespace } = policy.metadata;
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: isMutating(policy) ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration',
    metadata: {
      name: id,
      labels: MANAGED_BY,
      annotations: {
        kubewardenPolicyName: policy.metadata.name ?? '',
        ...(namespace === undefined ? {} : { kubewardenPolicyNamespace: namespace }),
      },
    },
    webhooks: [
      {
        name: `${id}.kubewarden.admission`,
        admissionReviewVersions: ['v1'],
        clientConfig: {
          url: `${target.url}/validate/${id}`,
          caBundle: Buffer.from(target.ca).toString('base64'),
        },
        rules: spec.rules,
        failurePolicy: spec.failurePolicy ?? 'Fail',
        ...(spec.matchPolicy === undefined ? {} : { matchPolicy: spec.matchPolicy }),
        ...(spec.matchConditions === undefined ? {} : { matchConditions: spec.matchConditions }),
        ...(spec.objectSelector === undefined ? {} : { objectSelector: spec.objectSelector }),
        ...namespaceSelector(policy),
        sideEffects: spec.sideEffects ?? 'None',
        timeoutSeconds: spec.timeoutSeconds ?? 10,
      },
    ],
  };
}

/** A policy of a namespace is for that namespace only. */
function namespaceSelector({ metadata, spec }: AdmissionPolicyObject): { namespaceSelector?: unknown } {
  if (metadata.namespace !== undefined) {
    return { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': metadata.namespace } } };
  }
  return 'namespaceSelector' in spec ? { namespaceSelector: spec.namespaceSelector } : {};
}

/** The policy that a configuration was made for; undefined when it was made for none. */
export function policyOf({ metadata }: KubernetesObject): ObjectKey | undefined {
  const { kubewardenPolicyName: name, kubewardenPolicyNamespace: namespace } = metadata.annotations ?? {};
  return name === undefined ? undefined : namespace === undefined ? { name } : { namespace, name };
}
