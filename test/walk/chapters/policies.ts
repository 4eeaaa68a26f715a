// The policies of the first chapters.
import { SHOP } from '../walk-lab.ts';

/** A manifest of a policy of the cluster for creations in the namespace of the tenant, as commands that apply it. */
export function applyPolicy(name: string, resource: string, spec: object): string {
  return applyObject({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: [resource], operations: ['CREATE'] }],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': SHOP } },
      ...spec,
    },
  });
}

/** Commands that apply an object. Variables of the shell are replaced in it. */
export function applyObject(object: object): string {
  return `kubectl apply -f - <<EOF\n${JSON.stringify(object)}\nEOF`;
}

/** Spec of a policy that rejects everything with a message. */
export function rejects(message: string): object {
  return { module: 'builtin:cel', settings: { validations: [{ expression: 'false', message }] } };
}
