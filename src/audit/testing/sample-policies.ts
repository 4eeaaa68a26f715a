import type { AdmissionPolicyObject, KubernetesObject } from '../../resources/index.ts';
import { type AuditedInstallation, type AuditPolicy, auditPolicy } from '../audit-policy.ts';

export const INSTALLATION: AuditedInstallation = { productNamespace: 'portcullis', exemptNamespaces: ['kube-system'] };

/** A rule for creations and updates of a resource of the core group. */
export function ruleFor(resource: string, more: object = {}): object {
  return { apiGroups: [''], apiVersions: ['v1'], resources: [resource], operations: ['CREATE', 'UPDATE'], ...more };
}

/** Whether images are pinned. */
export const NOT_LATEST = "object.spec.containers.all(c, !c.image.endsWith(':latest'))";

/** A policy of CEL, whose only validation has the message `no`. */
export function celSpec(expression: string, more: object = {}): object {
  return {
    module: 'builtin:cel',
    settings: { validations: [{ expression, message: 'no' }] },
    rules: [ruleFor('pods')],
    mutating: false,
    ...more,
  };
}

/** The object of a policy; with a namespace, of an AdmissionPolicy. */
export function policyObject(name: string, spec: object, namespace?: string): KubernetesObject {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec,
  };
}

/** A policy to audit. @throws Error when the spec has mistakes */
export function samplePolicy(name: string, spec: object, namespace?: string): AuditPolicy {
  const read = auditPolicy(policyObject(name, spec, namespace) as AdmissionPolicyObject, INSTALLATION);
  if (!('id' in read)) {
    throw new Error(read.problems.join('; '));
  }
  return read;
}

/** A pod with one container. */
export function samplePod(
  namespace: string,
  name: string,
  image: string,
  labels: Readonly<Record<string, string>> = {},
): KubernetesObject {
  const spec = { containers: [{ name: 'main', image }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name, labels }, spec };
}
