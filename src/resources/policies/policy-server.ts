import { anything, choice, entries, integer, integerOrText, list, object, optional, text } from '../schema-builder.ts';
import { CONDITIONS, OBSERVED_GENERATION, POLICIES_GROUP, UNSEEN } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';

/** Resource quantities (`apimachinery`, `resource.Quantity`). */
const QUANTITY = integerOrText('A quantity: `500m`, `256Mi`.', {
  pattern:
    '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$',
});

const PORT = { minimum: 1, maximum: 65_535 } as const;
/** A port with a default. */
const port = (description: string) => optional(integer(description, PORT));

const policyServer = {
  group: POLICIES_GROUP,
  version: 'v1',
  kind: 'PolicyServer',
  plural: 'policyservers',
  // Not Kubewarden's `ps`: that is External Secrets' PushSecret.
  shortNames: ['polsrv'],
  categories: ['kubewarden', 'portcullis'],
  scope: 'Cluster',
  description: 'A set of processes that run policies.',
  // The maximum length of label values, which contain the name.
  name: { maxLength: 63 },
  spec: object(
    'The processes.',
    {
      image: text("The container image. Where it is Kubewarden's own, Portcullis' runs in its place."),
      replicas: integer('Number of processes.', { minimum: 0 }),
      minAvailable: optional(
        integerOrText('Minimum number of processes during a disruption. Excludes `maxUnavailable`.'),
      ),
      maxUnavailable: optional(
        integerOrText('Maximum number of unavailable processes during a disruption. Excludes `minAvailable`.'),
      ),
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
        text('The Secret with credentials for registries: of the image of the pods, and of modules.'),
      ),
      insecureSources: optional(list('Hosts of modules whose certificates are not verified.', text('`host:port`'))),
      sourceAuthorities: optional(
        entries('CA certificates for hosts of modules, by host.', list('Certificates.', text('A certificate in PEM.'))),
      ),
      verificationConfig: optional(
        text(
          'The ConfigMap with the signatures that modules must have, under the key `verification-config`, in the namespace of Portcullis.',
        ),
      ),
      sigstoreTrustConfig: optional(
        text(
          'The ConfigMap with the trust root of keyless signatures, under the key `sigstore-trust-config`, in the namespace of Portcullis.',
        ),
      ),
      moduleCache: optional(
        object(
          'The volume for the module cache and the records of what serves. Default: an emptyDir.',
          {
            emptyDir: optional(
              object('Deleted with the pod.', {
                sizeLimit: optional(QUANTITY),
              }),
            ),
            persistentVolumeClaim: optional(
              object('Shared by all pods; their nodes must be able to write to it.', {
                claimName: text('The claim, in the namespace of Portcullis.', { minLength: 1, maxLength: 253 }),
              }),
            ),
            hostPath: optional(
              object('A folder of each node. It must exist, and be writable for the user of the pods.', {
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
          container: optional(anything('Of the container.')),
          pod: optional(anything('Of the pods.')),
        }),
      ),
      affinity: optional(anything('The affinity of the pods.')),
      limits: optional(entries('Resource limits of a pod.', QUANTITY)),
      requests: optional(entries('Resource requests of a pod.', QUANTITY)),
      tolerations: optional(
        list('Taints of nodes that the pods tolerate.', anything('One toleration.'), {
          'x-kubernetes-list-type': 'atomic',
        }),
      ),
      priorityClassName: optional(text('The priority class of the pods.')),
      namespacedPoliciesCapabilities: optional(
        list(
          'Host capabilities that policies of namespaces may use, with wildcards. Default: none; all, as in Kubewarden, with the annotation portcullis.dev/take-over.',
          text('`oci/*`'),
        ),
      ),
      maxModuleSize: optional(
        text(
          'The largest module of a policy of the cluster, `256Mi` at most. Policies of namespaces have 64Mi at most. Default: 64Mi.',
          {
            pattern: '^[1-9][0-9]{0,2}Mi$',
          },
        ),
      ),
      webhookPort: port('The port of the webhook. Default: 8443.'),
      readinessProbePort: port('The port of the readiness probe. Default: 8081.'),
      metricsPort: port('The port of the metrics. Default: 8080.'),
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
    'The state of the processes. Written by the controller.',
    {
      observedGeneration: OBSERVED_GENERATION,
      readyReplicas: optional(
        integer('Number of ready pods; of connected processes, where there is no Deployment.', { minimum: 0 }),
      ),
      totalReplicas: optional(integer('Number of processes.', { minimum: 0 })),
      image: optional(text('The image of the pods.')),
      moduleCache: optional(
        choice('The volume of the module cache. Only the latter two survive the loss of all pods.', [
          'emptyDir',
          'persistentVolumeClaim',
          'hostPath',
        ]),
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

export type PolicyServerObject = ObjectOfKind<typeof policyServer>;
export const POLICY_SERVERS = ownKind(policyServer);
