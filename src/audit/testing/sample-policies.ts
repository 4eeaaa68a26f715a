import type { AdmissionPolicyObject, KubernetesObject } from '../../resources/index.ts';
import { type AuditedInstallation, type AuditPolicy, auditPolicy } from '../audit-policy.ts';

const INSTALLATION: AuditedInstallation = { productNamespace: 'portcullis', exemptNamespaces: ['kube-system'] };

/** A rule for creations and updates of a resource of the core group. */
export function ruleFor(resource: string, more: object = {}): object {
  return { apiGroups: [''], apiVersions: ['v1'], resources: [resource], operations: ['CREATE', 'UPDATE'], ...more };
}

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
function policyObject(name: string, spec: object, namespace?: string): KubernetesObject {
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
