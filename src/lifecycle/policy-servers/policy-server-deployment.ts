// The Deployment that runs the processes of a PolicyServer.
import type { JsonObject, PolicyServerObject } from '../../resources/index.ts';
import { moduleCacheOf } from './module-cache-volume.ts';
import { moduleSources, SOURCES_FILE, sourcesHash } from './module-sources.ts';
import { podEnvironment } from './pod-environment.ts';
import { serviceAccountOf } from './policy-server-access.ts';
import {
  policyServerLabels,
  policyServerObjectName,
  policyServerSelector,
} from '../certificates/policy-server-names.ts';
import { type PolicyServerPorts, policyServerPorts } from './policy-server-ports.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';
import { runningImage } from './running-image.ts';
import { maxModuleMebibytes } from '../grants/max-module-size.ts';
import { tenantCapabilities } from '../grants/tenant-capabilities.ts';
import {
  verificationAnnotations,
  verificationFlags,
  type VerificationTexts,
  verificationVolume,
} from './verification-files.ts';

/** How long a stopping process accepts requests: until every API server has switched to other pods. Seconds. */
const SHUTDOWN_DELAY_SECONDS = 10;
/** Then running reviews end: at most 30 s, the longest timeout of a webhook, and a margin. */
const TERMINATION_SECONDS = SHUTDOWN_DELAY_SECONDS + 30 + 5;
/** Number of old ReplicaSets to keep. */
const REVISION_HISTORY_LIMIT = 3;
/** Name of Docker's config file. */
const DOCKER_CONFIG_FILE = 'config.json';
/** Changes with the module sources, which the process reads at its start. */
const SOURCES_ANNOTATION = 'portcullis.dev/sources';

/** Paths in the container. */
const FOLDERS = {
  webhook: '/etc/portcullis/webhook',
  control: '/etc/portcullis/control',
  sources: '/etc/portcullis/sources',
  docker: '/etc/portcullis/docker',
  verification: '/etc/portcullis/verification',
  data: '/var/lib/portcullis',
  temporary: '/tmp',
} as const;

/** The requirements of the Pod Security Standard `restricted`. */
const RESTRICTED_POD: JsonObject = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };
const RESTRICTED_CONTAINER: JsonObject = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  privileged: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

/** `apps/v1` Deployment. A new pod is ready before an old one stops, so that requests are covered during an upgrade. */
export function policyServerDeployment(
  server: PolicyServerObject,
  settings: PolicyServerSettings,
  verification: VerificationTexts = {},
): JsonObject {
  const { spec } = server;
  const name = server.metadata.name ?? '';
  const labels = policyServerLabels(name);
  const files: ProcessFiles = { sources: moduleSources(server), verification };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: policyServerObjectName(name), namespace: settings.namespace, labels },
    spec: {
      replicas: spec.replicas,
      revisionHistoryLimit: REVISION_HISTORY_LIMIT,
      selector: { matchLabels: policyServerSelector(name) },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: {
          // Our labels take precedence: the selector needs them.
          labels: { ...spec.labels, ...labels },
          ...annotationsOf(spec, files),
        },
        spec: podSpec(server, settings, files),
      },
    },
  };
}

/** Texts of files that the process reads at its start, so that pods are replaced when they change. */
interface ProcessFiles {
  readonly sources: string | undefined;
  readonly verification: VerificationTexts;
}

function annotationsOf(
  { annotations }: PolicyServerObject['spec'],
  { sources, verification }: ProcessFiles,
): JsonObject {
  const all = {
    ...annotations,
    ...(sources === undefined ? {} : { [SOURCES_ANNOTATION]: sourcesHash(sources) }),
    ...verificationAnnotations(verification),
  };
  return Object.keys(all).length === 0 ? {} : { annotations: all };
}

function podSpec(server: PolicyServerObject, settings: PolicyServerSettings, files: ProcessFiles): JsonObject {
  const { spec } = server;
  const name = server.metadata.name ?? '';
  const objectName = policyServerObjectName(name);
  const cache = moduleCacheOf(spec, name);
  const selector = { matchLabels: policyServerSelector(name) };
  const { imagePullSecrets = [] } = settings;
  const pullSecrets = [
    ...new Set([...(isNamed(spec.imagePullSecret) ? [spec.imagePullSecret] : []), ...imagePullSecrets]),
  ];
  const verification = verificationVolume(files.verification, 'verification');
  const hasAffinity = spec.affinity !== undefined && Object.keys(spec.affinity).length > 0;
  return {
    serviceAccountName: serviceAccountOf(server),
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: TERMINATION_SECONDS,
    securityContext: spec.securityContexts?.pod ?? {
      ...RESTRICTED_POD,
      ...(cache.fsGroup === undefined ? {} : { fsGroup: cache.fsGroup }),
    },
    ...(pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((secret) => ({ name: secret })) }),
    ...(hasAffinity
      ? { affinity: spec.affinity }
      : {
          topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((key) =>
            spread(key, selector),
          ),
        }),
    ...(spec.tolerations === undefined || spec.tolerations.length === 0 ? {} : { tolerations: [...spec.tolerations] }),
    ...(isNamed(spec.priorityClassName) ? { priorityClassName: spec.priorityClassName } : {}),
    containers: [container(server, settings, files, cache.subPath)],
    volumes: [
      { name: 'webhook', secret: { secretName: `${objectName}-webhook` } },
      { name: 'control', secret: { secretName: `${objectName}-control` } },
      { name: 'data', ...cache.volume },
      { name: 'temporary', emptyDir: {} },
      ...(files.sources === undefined ? [] : [{ name: 'sources', configMap: { name: objectName } }]),
      ...(verification === undefined ? [] : [verification]),
      ...(isNamed(spec.imagePullSecret) ? [credentialsVolume(spec.imagePullSecret)] : []),
    ],
  };
}

/** The credentials for registries. Kubernetes updates the file when the Secret changes. */
function credentialsVolume(secretName: string): JsonObject {
  const items = [{ key: '.dockerconfigjson', path: DOCKER_CONFIG_FILE }];
  // As for images, a Secret that does not exist must not keep pods from starting.
  return { name: 'docker', secret: { secretName, items, optional: true } };
}

/** Spreads the pods, so that the loss of a node or zone does not take all of them. */
function spread(topologyKey: string, labelSelector: JsonObject): JsonObject {
  return { maxSkew: 1, topologyKey, whenUnsatisfiable: 'ScheduleAnyway', labelSelector };
}

function container(
  server: PolicyServerObject,
  settings: PolicyServerSettings,
  files: ProcessFiles,
  subPath: string | undefined,
): JsonObject {
  const { spec } = server;
  const ports = policyServerPorts(spec);
  const mount = (name: keyof typeof FOLDERS): JsonObject => ({ name, mountPath: FOLDERS[name], readOnly: true });
  const isEmpty = (amounts: object | undefined): boolean => amounts === undefined || Object.keys(amounts).length === 0;
  return {
    name: 'policy-server',
    image: runningImage(spec.image, settings.image),
    args: [...containerArguments(server, settings, ports, files)],
    env: [...podEnvironment(spec.env ?? [])],
    ports: [
      { name: 'webhook', containerPort: ports.webhook, protocol: 'TCP' },
      { name: 'readiness', containerPort: ports.operations, protocol: 'TCP' },
      { name: 'control', containerPort: ports.control, protocol: 'TCP' },
    ],
    // Independent of policies: a slow policy is no reason for a restart.
    livenessProbe: { ...probe('/livez'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    // Ready once the policies are loaded or have failed to load.
    readinessProbe: { ...probe('/readyz'), periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 3 },
    startupProbe: { ...probe('/livez'), periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 60 },
    ...(isEmpty(spec.limits) && isEmpty(spec.requests)
      ? {}
      : {
          resources: {
            ...(isEmpty(spec.limits) ? {} : { limits: spec.limits as JsonObject }),
            ...(isEmpty(spec.requests) ? {} : { requests: spec.requests as JsonObject }),
          },
        }),
    securityContext: spec.securityContexts?.container ?? RESTRICTED_CONTAINER,
    volumeMounts: [
      mount('webhook'),
      mount('control'),
      { name: 'data', mountPath: FOLDERS.data, ...(subPath === undefined ? {} : { subPath }) },
      { name: 'temporary', mountPath: FOLDERS.temporary },
      ...(files.sources === undefined ? [] : [mount('sources')]),
      ...(Object.keys(files.verification).length === 0 ? [] : [mount('verification')]),
      ...(isNamed(spec.imagePullSecret) ? [mount('docker')] : []),
    ],
  };
}

function probe(path: string): JsonObject {
  return { httpGet: { path, port: 'readiness', scheme: 'HTTP' } };
}

/** Arguments of `portcullis`. */
function containerArguments(
  server: PolicyServerObject,
  { namespace, listenAddress = '0.0.0.0' }: PolicyServerSettings,
  ports: PolicyServerPorts,
  files: ProcessFiles,
): readonly string[] {
  const { webhook, control, sources, docker, data } = FOLDERS;
  const maxModuleSize = maxModuleMebibytes(server);
  const flags: readonly (readonly [string, string | number])[] = [
    ['policy-server', server.metadata.name ?? ''],
    ['namespace', namespace],
    ['addr', listenAddress],
    ['port', ports.webhook],
    ['cert-file', `${webhook}/tls.crt`],
    ['key-file', `${webhook}/tls.key`],
    ['readiness-probe-port', ports.operations],
    ['control-addr', listenAddress],
    ['control-port', ports.control],
    ['control-cert-file', `${control}/tls.crt`],
    ['control-key-file', `${control}/tls.key`],
    ['control-ca-file', `${control}/ca.crt`],
    ['policies-download-dir', data],
    ['shutdown-delay', SHUTDOWN_DELAY_SECONDS],
    ...(files.sources !== undefined ? ([['sources-path', `${sources}/${SOURCES_FILE}`]] as const) : []),
    ...(isNamed(server.spec.imagePullSecret)
      ? ([['docker-config-json-path', `${docker}/${DOCKER_CONFIG_FILE}`]] as const)
      : []),
    ...verificationFlags(files.verification, FOLDERS.verification),
    ...(maxModuleSize === undefined ? [] : ([['max-module-size', maxModuleSize]] as const)),
    ['namespaced-policies-capabilities', tenantCapabilities(server).join(',')],
  ];
  return ['serve', '--in-cluster', ...flags.map(([name, value]) => `--${name}=${value}`)];
}

function isNamed(name: string | undefined): name is string {
  return name !== undefined && name !== '';
}
