// The controller's Deployment, disruption budget and Service.
import type { KubernetesObject } from '../../resources/index.ts';
import { given } from './given.ts';
import {
  componentLabels,
  CONTROLLER,
  CONTROLLER_CONTROL_PORT,
  CONTROLLER_OPERATIONS_PORT,
  CONTROLLER_WEBHOOK_PORT,
  type InstallContext,
  podSelector,
} from './naming.ts';
import { RESTRICTED_CONTAINER, RESTRICTED_POD } from './restricted-pod.ts';

/** The folder for the controller's certificates. */
const CERTIFICATES_FOLDER = '/var/run/portcullis';
/** The folder for copies of modules. */
const COPIES_FOLDER = '/var/lib/portcullis';
/** The folder for compiled code. */
const SCRATCH_FOLDER = '/tmp';
/** How long an ending pod still answers, until all nodes have removed it from the Service. Seconds. */
const DRAIN_SECONDS = 5;
/** Time for a controller to give up its lease and answer pending requests. Seconds. */
const GRACE_SECONDS = 45;

/** The Deployment and its disruption budget. */
export function controllerDeployment(context: InstallContext): readonly KubernetesObject[] {
  const { namespace, values } = context;
  const metadata = { name: CONTROLLER, namespace, labels: componentLabels('controller') };
  const selector = { matchLabels: podSelector('controller') };
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: values.controller.replicas,
        revisionHistoryLimit: 3,
        selector,
        // Also with one replica, one pod always answers the webhook for our own kinds.
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: { metadata: { labels: componentLabels('controller') }, spec: podSpec(context) },
      },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      // `minAvailable: 1` would block the drain of a node when there is one replica.
      spec: { maxUnavailable: 1, selector, unhealthyPodEvictionPolicy: 'AlwaysAllow' },
    },
  ];
}

/** Meets the restricted Pod Security Standard; only three empty folders are writable. */
function podSpec({ namespace, values }: InstallContext): object {
  const { controller } = values;
  return {
    serviceAccountName: CONTROLLER,
    automountServiceAccountToken: true,
    ...given({
      imagePullSecrets: values.imagePullSecrets,
      priorityClassName: controller.priorityClassName,
      nodeSelector: controller.nodeSelector,
      tolerations: controller.tolerations,
      affinity: controller.affinity,
    }),
    terminationGracePeriodSeconds: GRACE_SECONDS,
    securityContext: RESTRICTED_POD,
    topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchLabels: podSelector('controller') },
    })),
    containers: [
      {
        name: 'controller',
        image: values.image,
        imagePullPolicy: values.imagePullPolicy,
        args: controllerArguments({ namespace, values }),
        env: [
          { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
          { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
          { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
          { name: 'HOME', value: SCRATCH_FOLDER },
          ...controller.extraEnv,
        ],
        ports: [
          { name: 'webhook', containerPort: CONTROLLER_WEBHOOK_PORT },
          { name: 'operations', containerPort: CONTROLLER_OPERATIONS_PORT },
          { name: 'control', containerPort: CONTROLLER_CONTROL_PORT },
        ],
        // Starting compiles code for some seconds, on a busy node for some ten.
        startupProbe: { httpGet: { path: '/livez', port: 'operations' }, periodSeconds: 2, failureThreshold: 30 },
        livenessProbe: { httpGet: { path: '/livez', port: 'operations' }, periodSeconds: 20, failureThreshold: 3 },
        readinessProbe: { httpGet: { path: '/readyz', port: 'operations' }, periodSeconds: 5, failureThreshold: 2 },
        // The pod still answers the webhook for our own kinds while API servers call it.
        lifecycle: { preStop: { sleep: { seconds: DRAIN_SECONDS } } },
        ...given({ resources: controller.resources }),
        securityContext: RESTRICTED_CONTAINER,
        volumeMounts: [
          { name: 'certificates', mountPath: CERTIFICATES_FOLDER },
          { name: 'module-copies', mountPath: COPIES_FOLDER },
          { name: 'scratch', mountPath: SCRATCH_FOLDER },
          ...controller.extraVolumeMounts,
        ],
      },
    ],
    volumes: [
      // In memory, so that no key is on a disk.
      { name: 'certificates', emptyDir: { medium: 'Memory', sizeLimit: '4Mi' } },
      { name: 'module-copies', emptyDir: { sizeLimit: controller.moduleCopiesSize } },
      { name: 'scratch', emptyDir: { sizeLimit: '512Mi' } },
      ...controller.extraVolumes,
    ],
  };
}

function controllerArguments({ namespace, values }: InstallContext): readonly string[] {
  const { certificates, controller, governance, networkPolicyStatus } = values;
  return [
    'controller',
    '--in-cluster',
    `--namespace=${namespace}`,
    '--manage-policy-servers',
    `--policy-server-image=${values.image}`,
    `--exempt-namespaces=${values.exemptNamespaces.join(',')}`,
    `--certificates=${certificates.mode}`,
    `--certificates-dir=${CERTIFICATES_FOLDER}/certificates`,
    `--ca-lifetime=${certificates.caLifetime}`,
    `--ca-overlap=${certificates.caOverlap}`,
    `--certificate-lifetime=${certificates.lifetime}`,
    `--policy-server-addr=${values.listenAddress}`,
    `--webhook-addr=${values.listenAddress}`,
    `--webhook-port=${CONTROLLER_WEBHOOK_PORT}`,
    `--webhook-api-servers=${values.apiServers.join(',')}`,
    `--operations-addr=${values.listenAddress}`,
    `--operations-port=${CONTROLLER_OPERATIONS_PORT}`,
    `--control-addr=${values.listenAddress}`,
    `--control-port=${CONTROLLER_CONTROL_PORT}`,
    `--module-copies-dir=${COPIES_FOLDER}/copies`,
    `--module-copies-size=${controller.moduleCopiesSize}`,
    `--rollout-strategy=${controller.rolloutStrategy}`,
    `--progress-deadline=${controller.progressDeadline}`,
    `--revision-history-limit=${controller.revisionHistoryLimit}`,
    `--degraded-policies=${controller.degradedPolicies}`,
    `--unserved-policies=${controller.unservedPolicies}`,
    `--auditor=${values.auditor.enabled}`,
    `--governance=${governance.enabled}`,
    `--governance-mode=${governance.mode}`,
    `--cluster-name=${governance.clusterName}`,
    `--governance-namespaces=${governance.namespaces.join(',')}`,
    `--network-policy-status=${networkPolicyStatus.enabled}`,
    `--network-policy-annotation=${networkPolicyStatus.annotation}`,
    `--network-policy-catalogue=${networkPolicyStatus.catalogue}`,
    `--log-level=${controller.logLevel}`,
    `--log-fmt=${controller.logFormat}`,
    ...controller.extraArgs,
  ];
}

/** The Service of the webhook for our own kinds. */
export function controllerService({ namespace }: InstallContext): readonly KubernetesObject[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: CONTROLLER, namespace, labels: componentLabels('controller') },
      spec: {
        type: 'ClusterIP',
        selector: podSelector('controller'),
        ports: [{ name: 'webhook', port: 443, targetPort: 'webhook', protocol: 'TCP' }],
      },
    },
  ];
}
