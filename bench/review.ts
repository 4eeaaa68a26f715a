// The review of the benches: the creation of a pod with five containers, about 5 KB.
import { writeFileSync } from 'node:fs';

/** Writes the review to a file and returns its path. */
export function writeReview(file: string): string {
  writeFileSync(file, JSON.stringify(review()));
  return file;
}

/** An AdmissionReview for the creation of a pod that no example policy rejects. */
export function review(): unknown {
  const gvk = { group: '', version: 'v1', kind: 'Pod' };
  const gvr = { group: '', version: 'v1', resource: 'pods' };
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
      kind: gvk,
      resource: gvr,
      requestKind: gvk,
      requestResource: gvr,
      name: 'web',
      namespace: 'shop',
      operation: 'CREATE',
      userInfo: {
        username: 'system:serviceaccount:kube-system:replicaset-controller',
        groups: ['system:serviceaccounts', 'system:authenticated'],
      },
      object: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: 'web-7d4b9c6f5-x2x8k',
          namespace: 'shop',
          labels: {
            'app.kubernetes.io/name': 'web',
            'app.kubernetes.io/part-of': 'shop',
            'pod-template-hash': '7d4b9c6f5',
          },
          annotations: {
            'prometheus.io/scrape': 'true',
            'prometheus.io/port': '9090',
            'example.com/description': 'x'.repeat(200),
          },
        },
        spec: {
          serviceAccountName: 'web',
          containers: Array.from({ length: 4 }, (_, index) => container(index)),
          volumes: [
            { name: 'data', emptyDir: {} },
            { name: 'config', configMap: { name: 'web' } },
          ],
        },
      },
      oldObject: null,
      dryRun: false,
      options: { apiVersion: 'meta.k8s.io/v1', kind: 'CreateOptions' },
    },
  };
}

function container(index: number): unknown {
  return {
    name: `container-${index}`,
    image: `registry.example.com/shop/service-${index}:1.2${index}.3`,
    args: ['--listen=:8080', '--log-level=info', `--shard=${index}`],
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
      { name: 'DATABASE_URL', value: 'postgres://shop.database.svc:5432/shop' },
    ],
    ports: [{ name: 'http', containerPort: 8080 + index, protocol: 'TCP' }],
    resources: { limits: { cpu: '500m', memory: '256Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    securityContext: {
      privileged: false,
      allowPrivilegeEscalation: false,
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
    },
    livenessProbe: { httpGet: { path: '/healthz', port: 'http' }, initialDelaySeconds: 5, periodSeconds: 10 },
    readinessProbe: { httpGet: { path: '/readyz', port: 'http' }, periodSeconds: 5 },
    volumeMounts: [
      { name: 'data', mountPath: '/var/lib/data' },
      { name: 'config', mountPath: '/etc/config', readOnly: true },
    ],
  };
}
