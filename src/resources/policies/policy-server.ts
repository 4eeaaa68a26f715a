import { anything, choice, entries, integer, integerOrText, list, object, optional, text } from '../schema-builder.ts';
import { CONDITIONS, OBSERVED_GENERATION, POLICIES_GROUP, UNSEEN } from './common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from './own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from './own-kind.ts';

/** Resource quantities (`apimachinery`, `resource.Quantity`). */
const QUANTITY = integerOrText('A quantity: `500m`, `256Mi`.', {
  pattern:
    '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$',
});

const PORT = { minimum: 1, maximum: 65_535 } as const;
/** A port that has a default does not need one given. */
const port = (description: string) => optional(integer(description, PORT));

const policyServer = {
  group: POLICIES_GROUP,
  version: 'v1',
  kind: 'PolicyServer',
  plural: 'policyservers',
  shortNames: ['ps'],
  categories: ['kubewarden', 'portcullis'],
  scope: 'Cluster',
  description: 'A set of processes that policies are run by.',
  // The name is part of labels, which hold no more.
  name: { maxLength: 63 },
  spec: object(
    'What the processes are.',
    {
      image: text("The container image. Where it is Kubewarden's own, Portcullis' runs in its place."),
      replicas: integer('How many processes there are.', { minimum: 0 }),
      minAvailable: optional(integerOrText('How many of them a disruption must leave. Excludes `maxUnavailable`.')),
      maxUnavailable: optional(integerOrText('How many of them a disruption may take. Excludes `minAvailable`.')),
      annotations: optional(entries('Annotations of the pods.', text('The value.'))),
      labels: optional(entries('Labels of the pods.', text('The value.'))),
      env: optional(
        list(
          'Environment variables of the container.',
          object('One variable.', {
            name: text('The name.'),
            value: optional(text('The value.')),
            valueFrom: optional(anything('Where the value comes from.')),
          }),
        ),
      ),
      serviceAccountName: optional(text('The service account of the pods.')),
      imagePullSecret: optional(
        text('A secret with credentials for registries. The image of the pods is pulled with it; modules are not yet.'),
      ),
      insecureSources: optional(
        list('Hosts that modules may come from without a certificate that can be verified.', text('`host:port`')),
      ),
      sourceAuthorities: optional(
        entries(
          'Authorities that certificates of hosts are verified with, by host.',
          list('Certificates.', text('A certificate in PEM.')),
        ),
      ),
      verificationConfig: optional(
        text('A config map that says which signatures modules need. Not supported yet: with it nothing is changed.'),
      ),
      sigstoreTrustConfig: optional(
        text('A config map with the roots that signatures are verified with. Not supported yet: not used.'),
      ),
      moduleCache: optional(
        object(
          'Where modules are kept, and the record of what serves. In an emptyDir where nothing is said.',
          {
            emptyDir: optional(
              object('Gone with each pod.', {
                sizeLimit: optional(QUANTITY),
              }),
            ),
            persistentVolumeClaim: optional(
              object('Shared by all pods; it must let all nodes write that they are on.', {
                claimName: text('The claim, in the namespace of Portcullis.', { minLength: 1, maxLength: 253 }),
              }),
            ),
            hostPath: optional(
              object('A folder of each node. It must be there, for the user of the pods to write.', {
                path: text('An absolute path.', { minLength: 2, pattern: '^/[^:]+$' }),
              }),
            ),
          },
          {
            rules: [
              {
                rule: '(has(self.emptyDir) ? 1 : 0) + (has(self.persistentVolumeClaim) ? 1 : 0) + (has(self.hostPath) ? 1 : 0) <= 1',
                message: 'at most one of emptyDir, persistentVolumeClaim and hostPath may be set',
                reason: 'FieldValueForbidden',
              },
            ],
          },
        ),
      ),
      securityContexts: optional(
        object('Security contexts.', {
          container: optional(anything('That of the container.')),
          pod: optional(anything('That of the pods.')),
        }),
      ),
      affinity: optional(anything('Where the pods may be.')),
      limits: optional(entries('What a pod may use at most.', QUANTITY)),
      requests: optional(entries('What a pod is given.', QUANTITY)),
      tolerations: optional(
        list('Taints of nodes that the pods tolerate.', anything('One toleration.'), {
          'x-kubernetes-list-type': 'atomic',
        }),
      ),
      priorityClassName: optional(text('The priority class of the pods.')),
      namespacedPoliciesCapabilities: optional(
        list(
          'Capabilities of the host that policies of namespaces may use, with wildcards. All where nothing is said.',
          text('`oci/*`'),
        ),
      ),
      webhookPort: port('The port of the webhook. 8443 where nothing is said.'),
      readinessProbePort: port('The port of the readiness probe. 8081 where nothing is said.'),
      metricsPort: port('The port of the metrics. 8080 where nothing is said.'),
    },
    {
      rules: [
        {
          rule: '!(has(self.minAvailable) && has(self.maxUnavailable))',
          message: 'minAvailable and maxUnavailable cannot be both set',
          fieldPath: '.maxUnavailable',
          reason: 'FieldValueForbidden',
        },
      ],
    },
  ),
  status: object(
    'What became of the processes. Written by the controller.',
    {
      observedGeneration: OBSERVED_GENERATION,
      readyReplicas: optional(integer('Processes that answer requests.', { minimum: 0 })),
      totalReplicas: optional(integer('Processes that there are.', { minimum: 0 })),
      image: optional(text('The image that the pods run.')),
      moduleCache: optional(
        choice(
          'Where modules are kept. Only what is in one of the latter two is there after all pods are gone at once.',
          ['emptyDir', 'persistentVolumeClaim', 'hostPath'],
        ),
      ),
      conditions: optional(CONDITIONS),
    },
    { default: UNSEEN },
  ),
  columns: [
    column('Replicas', '.spec.replicas', { type: 'integer' }),
    column('Ready', '.status.readyReplicas', { type: 'integer' }),
    column('Image', '.spec.image'),
    column('Status', '.status.conditions[?(@.type=="Ready")].reason'),
    AGE_COLUMN,
    column('Running Image', '.status.image', { isWide: true }),
    column('Module Cache', '.status.moduleCache', { isWide: true }),
    column('Message', '.status.conditions[?(@.type=="Ready")].message', { isWide: true }),
  ],
  example: {
    metadata: { name: 'default' },
    spec: { image: 'registry.example.com/portcullis:1.0.0', replicas: 2 },
  },
} as const satisfies KindDeclaration;

export type PolicyServer = ObjectOfKind<typeof policyServer>;
export const POLICY_SERVERS = ownKind(policyServer);
