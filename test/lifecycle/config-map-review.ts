/** A user creates a ConfigMap in a dry run. */
export interface ConfigMapRequest {
  /** Makes the uid unique. */
  readonly count: number;
  readonly namespace: string;
  readonly name: string;
  readonly username: string;
}

/** The AdmissionReview of an API server, as JSON. */
export function configMapReview({ count, namespace, name, username }: ConfigMapRequest): string {
  const kind = { group: '', version: 'v1', kind: 'ConfigMap' };
  const resource = { group: '', version: 'v1', resource: 'configmaps' };
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`,
      kind,
      resource,
      requestKind: kind,
      requestResource: resource,
      name,
      namespace,
      operation: 'CREATE',
      userInfo: { username, groups: [] },
      object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } },
      oldObject: null,
      dryRun: true,
    },
  });
}
