// The auditor: its account and rights, and its Deployment.
import { AUDITOR_NAMESPACE_RULES, AUDITOR_READ_RULES, AUDITOR_RULES } from '../../audit/access-rules/index.ts';
import { type AccessRule, AUDITOR_LABEL, type KubernetesObject } from '../../resources/index.ts';
import { commented } from './comments.ts';
import { given } from './given.ts';
import { granted, type Grant } from './governance-objects.ts';
import { AUDITOR, AUDITOR_OPERATIONS_PORT, componentLabels, type InstallContext, podSelector } from './naming.ts';
import { RESTRICTED_CONTAINER, RESTRICTED_POD } from './restricted-pod.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC_GROUP}/v1`;
/** The folder for modules and compiled code. */
const SCRATCH_FOLDER = '/tmp';

/** The folder with credentials for registries, and the file in it. */
const DOCKER_FOLDER = '/etc/portcullis/docker';
const DOCKER_CONFIG_FILE = 'config.json';

/** The ClusterRole with the kinds that the auditor may read, which Kubernetes collects. */
export const AUDITED_KINDS = `${AUDITOR}-kinds`;

/** What it writes, and the policies. */
export const AUDITOR_GRANTS: readonly Grant[] = [
  { kind: 'ClusterRole', name: AUDITOR, account: AUDITOR, rules: AUDITOR_RULES },
  { kind: 'Role', name: AUDITOR, account: AUDITOR, rules: AUDITOR_NAMESPACE_RULES },
];

/** Why it may write, by resource. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['clusteradmissionpolicies/status', 'What policies say about existing objects, in status.audit.'],
  ['leases', 'By which auditors know of each other.'],
  ['reports', 'Findings, as reports of OpenReports. Of others it changes none, which RBAC cannot say.'],
  ['policyreports', 'The same where auditor.reports is wgpolicyk8s.'],
]);

function explained(rule: AccessRule): AccessRule {
  const reason = rule.resources.map((resource) => REASONS.get(resource)).find((text) => text !== undefined);
  return reason === undefined ? rule : commented(reason, rule);
}

/** Its service account and rights. */
function auditorAccess({ namespace }: Pick<InstallContext, 'namespace'>): readonly KubernetesObject[] {
  const labels = componentLabels('auditor');
  const metadata = { name: AUDITOR, namespace, labels };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata, automountServiceAccountToken: false },
    ...AUDITOR_GRANTS.flatMap((grant) =>
      granted({ ...grant, rules: grant.rules.map(explained) }, namespace, 'auditor'),
    ),
    commented(
      'The kinds that the auditor may read. Whoever may write ClusterRoles with this label adds to them, also Secrets.',
      {
        apiVersion: RBAC_VERSION,
        kind: 'ClusterRole',
        metadata: { name: AUDITED_KINDS, labels },
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [AUDITOR_LABEL]: 'true' } }] },
      },
    ),
    {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRoleBinding',
      metadata: { name: AUDITED_KINDS, labels },
      roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: AUDITED_KINDS },
      subjects: [{ kind: 'ServiceAccount', name: AUDITOR, namespace }],
    },
    {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRole',
      metadata: { name: `${AUDITED_KINDS}-common`, labels: { ...labels, [AUDITOR_LABEL]: 'true' } },
      rules: AUDITOR_READ_RULES,
    },
  ];
}

/** Its account, rights, and Deployment: evictions need no limit, because nothing waits for it. */
export function auditor(context: InstallContext): readonly KubernetesObject[] {
  const { namespace, values } = context;
  return [
    ...auditorAccess(context),
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: AUDITOR, namespace, labels: componentLabels('auditor') },
      spec: {
        replicas: values.auditor.replicas,
        revisionHistoryLimit: 3,
        selector: { matchLabels: podSelector('auditor') },
        template: { metadata: { labels: componentLabels('auditor') }, spec: podSpec(context) },
      },
    },
  ];
}

/** Meets the restricted Pod Security Standard; only one empty folder is writable. */
function podSpec({ namespace, values }: InstallContext): object {
  const { auditor: settings } = values;
  return {
    serviceAccountName: AUDITOR,
    automountServiceAccountToken: true,
    ...given({
      imagePullSecrets: values.imagePullSecrets,
      priorityClassName: settings.priorityClassName,
      nodeSelector: settings.nodeSelector,
      tolerations: settings.tolerations,
      affinity: settings.affinity,
    }),
    securityContext: RESTRICTED_POD,
    containers: [
      {
        name: 'auditor',
        image: values.image,
        imagePullPolicy: values.imagePullPolicy,
        args: [
          'auditor',
          '--in-cluster',
          `--namespace=${namespace}`,
          `--exempt-namespaces=${values.exemptNamespaces.join(',')}`,
          `--policies-download-dir=${SCRATCH_FOLDER}/modules`,
          `--docker-config-json-path=${DOCKER_FOLDER}/${DOCKER_CONFIG_FILE}`,
          `--operations-addr=${values.listenAddress}`,
          `--operations-port=${AUDITOR_OPERATIONS_PORT}`,
          `--log-level=${settings.logLevel}`,
          `--log-fmt=${settings.logFormat}`,
          `--reports=${settings.reports}`,
          ...settings.extraArgs,
        ],
        env: [
          { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
          { name: 'HOME', value: SCRATCH_FOLDER },
          ...settings.extraEnv,
        ],
        ports: [{ name: 'operations', containerPort: AUDITOR_OPERATIONS_PORT }],
        // Starting compiles code for some seconds, on a busy node for some ten.
        startupProbe: { httpGet: { path: '/livez', port: 'operations' }, periodSeconds: 2, failureThreshold: 60 },
        livenessProbe: { httpGet: { path: '/livez', port: 'operations' }, periodSeconds: 20, failureThreshold: 3 },
        readinessProbe: { httpGet: { path: '/readyz', port: 'operations' }, periodSeconds: 10, failureThreshold: 2 },
        ...given({ resources: settings.resources }),
        securityContext: RESTRICTED_CONTAINER,
        volumeMounts: [
          { name: 'scratch', mountPath: SCRATCH_FOLDER },
          { name: 'docker', mountPath: DOCKER_FOLDER, readOnly: true },
          ...settings.extraVolumeMounts,
        ],
      },
    ],
    volumes: [
      { name: 'scratch', emptyDir: { sizeLimit: '1Gi' } },
      {
        name: 'docker',
        secret: {
          secretName: settings.imagePullSecret,
          items: [{ key: '.dockerconfigjson', path: DOCKER_CONFIG_FILE }],
          // Most installations need none.
          optional: true,
        },
      },
      ...settings.extraVolumes,
    ],
  };
}
