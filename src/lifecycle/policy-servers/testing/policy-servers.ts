// PolicyServers for tests.
import type { PolicyServerObject } from '../../../resources/index.ts';

export const SETTINGS = { namespace: 'portcullis', image: 'example.com/portcullis:1' } as const;

export function policyServer(spec: Partial<PolicyServerObject['spec']> = {}, name = 'default'): PolicyServerObject {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'PolicyServer',
    metadata: { name },
    spec: { image: 'example.com/portcullis:1', replicas: 1, ...spec },
  };
}

/** A valid `verification.yml`. */
export const VERIFICATION_CONFIG = `apiVersion: v1
allOf:
  - kind: githubAction
    owner: kubewarden
`;

/** Every field. */
export const EVERYTHING: Partial<PolicyServerObject['spec']> = {
  replicas: 3,
  minAvailable: '50%',
  annotations: { 'example.com/note': 'a' },
  labels: { team: 'security' },
  env: [
    { name: 'KUBEWARDEN_LOG_LEVEL', value: 'debug' },
    { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'tokens', key: 'one' } } },
  ],
  serviceAccountName: 'policies',
  imagePullSecret: 'registry',
  insecureSources: ['registry.example.com:5000'],
  sourceAuthorities: { 'modules.example.com': ['-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n'] },
  moduleCache: { persistentVolumeClaim: { claimName: 'modules' } },
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] }],
      },
    },
  },
  limits: { cpu: '1500m', memory: '0.5Gi' },
  requests: { cpu: 1, memory: '262144Ki' },
  tolerations: [{ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }],
  priorityClassName: 'system-cluster-critical',
  namespacedPoliciesCapabilities: ['oci/*', 'net/v1/dns_lookup_host'],
  webhookPort: 9443,
  readinessProbePort: 8444,
  metricsPort: 9090,
};
