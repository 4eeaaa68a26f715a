// A hook of the Helm chart: before Helm deletes the release, a Job removes the webhooks and stops the controller. Without it,
// API servers would still call deleted policy servers.
import {
  GOVERNANCE_GROUP,
  GOVERNANCE_KINDS,
  type KubernetesObject,
  POLICIES_GROUP,
  POLICY_KINDS,
  POLICY_SERVERS,
  type ResourceType,
} from '../../resources/index.ts';
import { PASSED_ON } from './access-objects.ts';
import { AUDITED_KINDS } from './auditor-objects.ts';
import { given } from './given.ts';
import { AUDITOR, componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

const NAME = 'portcullis-uninstall';
const RBAC_GROUP = 'rbac.authorization.k8s.io';
/** Time for the controller's pods to end. Seconds. */
const TIMEOUT_SECONDS = 90;
/** Helm creates hooks in the order of their weights; the rights come before the Job. */
const RIGHTS_WEIGHT = '-5';
const JOB_WEIGHT = '0';

const RULES = [
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
    verbs: ['list', 'delete'],
  },
  {
    apiGroups: [RBAC_GROUP],
    resources: ['clusterrolebindings'],
    resourceNames: [CONTROLLER, AUDITOR],
    verbs: ['delete'],
  },
  {
    apiGroups: [RBAC_GROUP],
    resources: ['clusterroles'],
    resourceNames: [PASSED_ON, AUDITED_KINDS],
    verbs: ['delete'],
  },
  ...statusRules(POLICIES_GROUP, [...POLICY_KINDS, POLICY_SERVERS]),
  ...statusRules(GOVERNANCE_GROUP, GOVERNANCE_KINDS),
  // Whether policies of governance are those of Open Cluster Management.
  {
    apiGroups: ['apiextensions.k8s.io'],
    resources: ['customresourcedefinitions'],
    resourceNames: GOVERNANCE_KINDS.map(({ resource, group }) => `${resource}.${group}`),
    verbs: ['get'],
  },
  { apiGroups: ['apps'], resources: ['deployments'], verbs: ['list'] },
];
const NAMESPACE_RULES = [
  { apiGroups: [RBAC_GROUP], resources: ['rolebindings'], resourceNames: [CONTROLLER], verbs: ['delete'] },
  { apiGroups: ['apps'], resources: ['deployments'], resourceNames: [CONTROLLER, AUDITOR], verbs: ['delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
];

/** The rights to write the last statuses. */
function statusRules(group: string, kinds: readonly ResourceType[]): readonly object[] {
  return [
    { apiGroups: [group], resources: kinds.map(({ resource }) => resource), verbs: ['list'] },
    { apiGroups: [group], resources: kinds.map(({ resource }) => `${resource}/status`), verbs: ['patch'] },
  ];
}

export function uninstallHook(context: InstallContext): readonly KubernetesObject[] {
  const { namespace } = context;
  const metadata = (weight: string, isNamespaced: boolean): KubernetesObject['metadata'] => ({
    name: NAME,
    ...(isNamespaced ? { namespace } : {}),
    labels: componentLabels('uninstall'),
    annotations: {
      'helm.sh/hook': 'pre-delete',
      'helm.sh/hook-weight': weight,
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
    },
  });
  const apiVersion = `${RBAC_GROUP}/v1`;
  const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace }];
  const grant = (kind: 'ClusterRole' | 'Role', rules: readonly object[]): readonly KubernetesObject[] => [
    { apiVersion, kind, metadata: metadata(RIGHTS_WEIGHT, kind === 'Role'), rules },
    {
      apiVersion,
      kind: `${kind}Binding`,
      metadata: metadata(RIGHTS_WEIGHT, kind === 'Role'),
      roleRef: { apiGroup: RBAC_GROUP, kind, name: NAME },
      subjects,
    },
  ];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadata(RIGHTS_WEIGHT, true) },
    ...grant('ClusterRole', RULES),
    ...grant('Role', NAMESPACE_RULES),
    { apiVersion: 'batch/v1', kind: 'Job', metadata: metadata(JOB_WEIGHT, true), spec: jobSpec(context) },
  ];
}

function jobSpec({ namespace, values }: InstallContext): object {
  return {
    backoffLimit: 2,
    activeDeadlineSeconds: 3 * TIMEOUT_SECONDS,
    template: {
      metadata: { labels: componentLabels('uninstall') },
      spec: {
        serviceAccountName: NAME,
        restartPolicy: 'Never',
        ...given({
          imagePullSecrets: values.imagePullSecrets,
          nodeSelector: values.controller.nodeSelector,
          tolerations: values.controller.tolerations,
        }),
        securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            name: 'uninstall',
            image: values.image,
            imagePullPolicy: values.imagePullPolicy,
            args: [
              'uninstall',
              '--in-cluster',
              '--webhooks-only',
              `--namespace=${namespace}`,
              `--timeout=${TIMEOUT_SECONDS}s`,
            ],
            env: [{ name: 'HOME', value: '/tmp' }],
            resources: {
              requests: { cpu: '50m', memory: '96Mi' },
              limits: { cpu: '1', memory: '256Mi' },
            },
            securityContext: {
              allowPrivilegeEscalation: false,
              capabilities: { drop: ['ALL'] },
              readOnlyRootFilesystem: true,
            },
          },
        ],
      },
    },
  };
}
