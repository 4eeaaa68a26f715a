// The declaration of installation values. The values of the Helm chart with their comments and schema, the validation of
// `portcullis install --values`, and the table in docs/install.md come from it.
import { ANNOTATION_MODES, type AnnotationMode } from '../../network-policy/settings/index.ts';
import type { JsonObject, JsonValue } from '../../resources/index.ts';

export type ValueType = 'boolean' | 'integer' | 'list' | 'object' | 'texts' | 'text';

export interface ValueDeclaration {
  readonly type: ValueType;
  readonly description: string;
  readonly default: JsonValue;
  /** The valid texts. Default: all. */
  readonly choices?: readonly string[];
  /** The smallest valid integer. */
  readonly minimum?: number;
  /** An RE2 pattern that a text must match. */
  readonly pattern?: string;
}

/** Values by name, in sections. */
export interface ValueSection {
  readonly description: string;
  readonly values: Readonly<Record<string, ValueDeclaration | ValueSection>>;
}

/** All values, with defaults applied. */
export interface InstallValues {
  readonly image: string;
  readonly imagePullPolicy: string;
  readonly imagePullSecrets: readonly JsonObject[];
  readonly exemptNamespaces: readonly string[];
  readonly listenAddress: string;
  readonly apiServers: readonly string[];
  readonly controller: {
    readonly replicas: number;
    readonly logLevel: string;
    readonly logFormat: string;
    readonly rolloutStrategy: string;
    readonly progressDeadline: string;
    readonly revisionHistoryLimit: number;
    readonly degradedPolicies: string;
    readonly unservedPolicies: string;
    readonly moduleCopiesSize: string;
    readonly resources: JsonObject;
    readonly nodeSelector: JsonObject;
    readonly tolerations: readonly JsonObject[];
    readonly affinity: JsonObject;
    readonly priorityClassName: string;
    readonly extraArgs: readonly string[];
    readonly extraEnv: readonly JsonObject[];
    readonly extraVolumes: readonly JsonObject[];
    readonly extraVolumeMounts: readonly JsonObject[];
  };
  readonly auditor: {
    readonly enabled: boolean;
    readonly replicas: number;
    readonly reports: string;
    readonly imagePullSecret: string;
    readonly logLevel: string;
    readonly logFormat: string;
    readonly resources: JsonObject;
    readonly nodeSelector: JsonObject;
    readonly tolerations: readonly JsonObject[];
    readonly affinity: JsonObject;
    readonly priorityClassName: string;
    readonly extraArgs: readonly string[];
    readonly extraEnv: readonly JsonObject[];
    readonly extraVolumes: readonly JsonObject[];
    readonly extraVolumeMounts: readonly JsonObject[];
  };
  readonly certificates: {
    readonly mode: string;
    readonly caLifetime: string;
    readonly caOverlap: string;
    readonly lifetime: string;
    readonly certManager: { readonly enabled: boolean; readonly issuer: JsonObject };
  };
  readonly governance: {
    readonly enabled: boolean;
    readonly mode: string;
    readonly clusterName: string;
    readonly namespaces: readonly string[];
    readonly roles: readonly string[];
  };
  readonly policyServer: {
    readonly enabled: boolean;
    readonly replicas: number;
    readonly requests: JsonObject;
    readonly limits: JsonObject;
    readonly imagePullSecret: string;
    readonly env: readonly JsonObject[];
  };
  readonly recommendedPolicies: { readonly enabled: boolean; readonly mode: string };
  readonly networkPolicy: { readonly enabled: boolean };
  readonly networkPolicyStatus: {
    readonly enabled: boolean;
    readonly annotation: AnnotationMode;
    readonly catalogue: string;
  };
  readonly userRoles: { readonly enabled: boolean; readonly aggregateWrite: boolean };
  readonly uninstallHook: { readonly enabled: boolean };
  readonly monitoring: {
    readonly podMonitor: { readonly enabled: boolean };
    readonly prometheusRule: { readonly enabled: boolean };
    readonly labels: Readonly<Record<string, string>>;
  };
}

const text = (description: string, preset: string, more: Partial<ValueDeclaration> = {}): ValueDeclaration => ({
  type: 'text',
  description,
  default: preset,
  ...more,
});
const choice = (description: string, choices: readonly [string, ...string[]]): ValueDeclaration =>
  text(description, choices[0], { choices });
const flag = (description: string, preset: boolean): ValueDeclaration => ({
  type: 'boolean',
  description,
  default: preset,
});
const integer = (description: string, preset: number, minimum: number): ValueDeclaration => ({
  type: 'integer',
  description,
  default: preset,
  minimum,
});
const list = (description: string): ValueDeclaration => ({ type: 'list', description, default: [] });
const texts = (description: string, preset: string[] = []): ValueDeclaration => ({
  type: 'texts',
  description,
  default: preset,
});
const object = (description: string, preset: JsonObject = {}): ValueDeclaration => ({
  type: 'object',
  description,
  default: preset,
});
const section = (
  description: string,
  values: Readonly<Record<string, ValueDeclaration | ValueSection>>,
): ValueSection => ({ description, values });

/** Durations in the syntax of the flags of controllers and policy servers. */
const DURATION = '^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$';

/** @param version of the product */
export function valuesDeclaration(version: string): ValueSection {
  return section('Values of Portcullis.', {
    image: text(
      'Image of the controller, the auditor and policy servers, with your registry. A digest (@sha256:…) pins it.',
      `portcullis:${version}`,
      { pattern: '^\\S+$' },
    ),
    imagePullPolicy: choice('Pull policy of the image.', ['IfNotPresent', 'Always', 'Never']),
    imagePullSecrets: list('Pull secrets of the pods of controller and auditor: a list of {name: …}.'),
    exemptNamespaces: texts(
      'Namespaces that policies of the cluster do not apply to, because a cluster needs them to start.',
      ['kube-system', 'kube-public', 'kube-node-lease'],
    ),
    listenAddress: text(
      "Address that the pods of the controller, the auditor and policy servers listen on. Use '::', in quotes, on IPv6 and dual-stack clusters.",
      '0.0.0.0',
      { pattern: '^([0-9.]+|[0-9A-Fa-f:]+)$' },
    ),
    apiServers: texts(
      'Addresses and networks (CIDR) that API servers call webhooks of the controller from: other clients are refused. Empty: clients that are not known as API servers are told less of why a policy is refused.',
      [],
    ),
    controller: section('The controller.', {
      replicas: integer('Replicas of the controller. One leads; the others serve its webhook and stand by.', 2, 0),
      logLevel: choice('Lowest level that is logged.', ['info', 'trace', 'debug', 'warn', 'error']),
      logFormat: choice('Format of log lines.', ['json', 'text']),
      rolloutStrategy: choice(
        'At the progress deadline of a rollout, serve on the replicas that loaded the revision (Available), or wait for all replicas (AllReplicas).',
        ['Available', 'AllReplicas'],
      ),
      progressDeadline: text('How long replicas may take to load a revision.', '1m', { pattern: DURATION }),
      revisionHistoryLimit: integer(
        'Number of revisions that are kept of each policy, besides the one that serves.',
        10,
        0,
      ),
      degradedPolicies: choice(
        'When the newest revision of a policy fails: its last good revision serves (last-good), its failurePolicy answers requests (reject), or it is not enforced (ignore).',
        ['last-good', 'reject', 'ignore'],
      ),
      unservedPolicies: choice(
        'When no revision of a policy has ever served, and the newest one fails: the policy is not enforced (ignore), or its failurePolicy answers requests (reject).',
        ['ignore', 'reject'],
      ),
      moduleCopiesSize: text(
        'Size of the folder in which each controller has copies of the modules of policy servers, for when all of their pods are lost and a source is down.',
        '1Gi',
        { pattern: '^[1-9][0-9]{0,5}(Mi|Gi)$' },
      ),
      resources: object('Resource requests and limits of a controller pod.', {
        requests: { cpu: '100m', memory: '192Mi' },
        limits: { cpu: '2', memory: '1Gi' },
      }),
      nodeSelector: object('Node selector of the controller pods.'),
      tolerations: list('Tolerations of the controller pods.'),
      affinity: object('Affinity of the controller pods. They are spread over nodes in any case.'),
      priorityClassName: text(
        'Priority class of the controller pods. Use system-cluster-critical where policies must be enforced before anything else runs.',
        '',
      ),
      extraArgs: texts('Additional arguments of `portcullis controller`.'),
      extraEnv: list('Additional environment variables: a list of {name: …, value: …}.'),
      extraVolumes: list('Additional volumes of the controller pods: a list of {name: …, configMap: …}.'),
      extraVolumeMounts: list('Their mounts in the container: a list of {name: …, mountPath: …}.'),
    }),
    auditor: section('The auditor, which judges existing objects by the policies.', {
      enabled: flag('Run the auditor. Without it nothing is known of existing objects.', true),
      replicas: integer('Replicas of the auditor. They share the namespaces of the cluster.', 1, 0),
      logLevel: choice('Lowest level that is logged.', ['info', 'trace', 'debug', 'warn', 'error']),
      logFormat: choice('Format of log lines.', ['json', 'text']),
      reports: choice(
        'Where findings are kept, besides the ten newest in the status of each policy: in reports of OpenReports where the cluster serves them (served), or with their CustomResourceDefinitions, which are then installed and never deleted: those of OpenReports (openreports), or of the API before it, PolicyReports (wgpolicyk8s).',
        ['served', 'openreports', 'wgpolicyk8s'],
      ),
      imagePullSecret: text(
        'Secret with the credentials by which the auditor pulls modules, in the namespace of Portcullis, such as the pull secret of a PolicyServer. Its pods read this Secret and no other; it may be missing.',
        'portcullis-auditor-registries',
        { pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$' },
      ),
      resources: object(
        'Resource requests and limits of an auditor pod. The limit of cpu is its share of the processor: with less, it only takes longer.',
        { requests: { cpu: '50m', memory: '192Mi' }, limits: { cpu: '1', memory: '512Mi' } },
      ),
      nodeSelector: object('Node selector of the auditor pods.'),
      tolerations: list('Tolerations of the auditor pods.'),
      affinity: object('Affinity of the auditor pods.'),
      priorityClassName: text(
        'Priority class of the auditor pods. One with a low value makes room for others first.',
        '',
      ),
      extraArgs: texts('Additional arguments of `portcullis auditor`.'),
      extraEnv: list('Additional environment variables: a list of {name: …, value: …}.'),
      extraVolumes: list('Additional volumes of the auditor pods: a list of {name: …, configMap: …}.'),
      extraVolumeMounts: list('Their mounts in the container: a list of {name: …, mountPath: …}.'),
    }),
    certificates: section('Certificates of webhooks, and of connections between controller and policy servers.', {
      mode: choice(
        'Who issues the certificates: the controller, with its own CA (own), or another issuer such as cert-manager (external).',
        ['own', 'external'],
      ),
      caLifetime: text("Lifetime of the controller's CA.", '730d', { pattern: DURATION }),
      caOverlap: text('How long a new CA is trusted before it signs, and an old CA after it stops signing.', '15m', {
        pattern: DURATION,
      }),
      lifetime: text('Lifetime of the certificates that it signs.', '90d', { pattern: DURATION }),
      certManager: section('Certificates by cert-manager. Set mode to external as well.', {
        enabled: flag('Create cert-manager Certificates for the controller and the default PolicyServer.', false),
        issuer: object('Issuer of the certificates. It must set ca.crt, as a CA issuer does.', {
          kind: 'Issuer',
          name: 'portcullis-ca',
        }),
      }),
    }),
    governance: section('Governance: Policies of the kinds of Open Cluster Management.', {
      enabled: flag('Apply Policies. While the controllers of Open Cluster Management run, nothing is done.', true),
      mode: choice('Apply Policies without a placement to this cluster (standalone), or only placed ones (hub).', [
        'standalone',
        'hub',
      ]),
      clusterName: text(
        'Name of this cluster, and of the namespace for copies of its Policies, which the controller creates.',
        'local-cluster',
        { pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' },
      ),
      namespaces: texts(
        'Namespaces whose Policies count: whoever may write Policies there has the rights of the governance account. Empty: all but kube-system, kube-public, kube-node-lease and that of Portcullis.',
      ),
      roles: texts(
        'ClusterRoles that are bound to the governance account: what Policies may read, and change where they enforce. Without any, Policies report what they may not read.',
      ),
    }),
    networkPolicyStatus: section(
      'The status of NetworkPolicies: what the network providers of the cluster do with them.',
      {
        enabled: flag(
          'Report it in NetworkPolicyStatuses. The controller reads NetworkPolicies, pods and nodes of all namespaces for it.',
          true,
        ),
        annotation: choice(
          'Repeat it in an annotation of each NetworkPolicy (write), which needs the right to patch them and wakes the agents of network providers; or remove these annotations (remove).',
          ANNOTATION_MODES,
        ),
        catalogue: text(
          'Catalogue of network providers that extends the builtin one: registry://HOST/REPOSITORY@sha256:…, or a file or folder of controller.extraVolumeMounts.',
          '',
        ),
      },
    ),
    policyServer: section('The PolicyServer `default`, which serves policies that name no PolicyServer.', {
      enabled: flag('Create the PolicyServer `default`.', true),
      replicas: integer('Number of its replicas.', 2, 0),
      requests: object('Resource requests of a pod.', { cpu: '250m', memory: '256Mi' }),
      limits: object('Resource limits of a pod.', { cpu: '2', memory: '1Gi' }),
      imagePullSecret: text('Pull secret of its pods.', ''),
      env: list('Environment variables of its pods: a list of {name: …, value: …}.'),
    }),
    recommendedPolicies: section('A starting set of policies. They use builtin modules only.', {
      enabled: flag('Create the recommended policies.', false),
      mode: choice('monitor logs verdicts without rejecting; protect rejects.', ['monitor', 'protect']),
    }),
    networkPolicy: section('NetworkPolicies.', {
      enabled: flag(
        'Create NetworkPolicies that open only the webhook port of the controller, and the metrics of controller and auditor to namespaces with the label portcullis.dev/metrics. Those of policy servers always exist.',
        true,
      ),
    }),
    userRoles: section('ClusterRoles for users.', {
      enabled: flag(
        'Create the ClusterRoles portcullis-view, aggregated to the ClusterRoles view, edit and admin of Kubernetes, portcullis-edit, and portcullis-network-policy-reporter.',
        true,
      ),
      aggregateWrite: flag(
        'Aggregate portcullis-edit, the right to write the policies of a namespace, to edit and admin. Without it, bind portcullis-edit in the namespaces whose users may write policies.',
        false,
      ),
    }),
    uninstallHook: section('With Helm only: a hook that runs before the release is deleted.', {
      enabled: flag(
        'Run a Job that removes the webhooks and stops the controller, as `portcullis uninstall` does.',
        true,
      ),
    }),
    monitoring: section('For the Prometheus operator.', {
      podMonitor: section('Scraping.', { enabled: flag('Create PodMonitors.', false) }),
      prometheusRule: section('Alerts.', {
        enabled: flag('Create a PrometheusRule with the alerts of docs/install.md.', false),
      }),
      labels: object('Labels of both, as the selectors of your Prometheus require.'),
    }),
  });
}

export function isSection(value: ValueDeclaration | ValueSection): value is ValueSection {
  return 'values' in value;
}
