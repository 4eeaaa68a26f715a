// What can be chosen when Portcullis is installed: one declaration, from which come the values of the Helm chart (with comments
// and schema), what `portcullis install --values` takes, and the table in docs/install.md.
import type { JsonObject, JsonValue } from '../../resources/index.ts';

/** What a value may be. */
export type ValueType = 'boolean' | 'integer' | 'list' | 'object' | 'texts' | 'text';

/** One value, and what it means. */
export interface ValueDeclaration {
  readonly type: ValueType;
  readonly description: string;
  readonly default: JsonValue;
  /** The only texts that it may be. */
  readonly choices?: readonly string[];
  /** The least integer. */
  readonly minimum?: number;
  /** RE2 that a text must match. */
  readonly pattern?: string;
}

/** Values by name, in sections. */
export interface ValueSection {
  readonly description: string;
  readonly values: Readonly<Record<string, ValueDeclaration | ValueSection>>;
}

/** What installed objects are made of. */
export interface InstallValues {
  readonly image: string;
  readonly imagePullPolicy: string;
  readonly imagePullSecrets: readonly JsonObject[];
  readonly exemptNamespaces: readonly string[];
  readonly listenAddress: string;
  readonly controller: {
    readonly replicas: number;
    readonly logLevel: string;
    readonly logFormat: string;
    readonly rolloutStrategy: string;
    readonly progressDeadline: string;
    readonly revisionHistoryLimit: number;
    readonly degradedPolicies: string;
    readonly resources: JsonObject;
    readonly nodeSelector: JsonObject;
    readonly tolerations: readonly JsonObject[];
    readonly affinity: JsonObject;
    readonly priorityClassName: string;
    readonly extraArgs: readonly string[];
    readonly extraEnv: readonly JsonObject[];
  };
  readonly certificates: {
    readonly mode: string;
    readonly caLifetime: string;
    readonly caOverlap: string;
    readonly lifetime: string;
    readonly certManager: { readonly enabled: boolean; readonly issuer: JsonObject };
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
  readonly userRoles: { readonly enabled: boolean };
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

/** As controllers and policy servers read durations. */
const DURATION = '^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$';

/** The declaration of all values. `version` is that of the product. */
export function valuesDeclaration(version: string): ValueSection {
  return section('Values of Portcullis.', {
    image: text(
      'Image of the controller and of policy servers. Name your registry; a digest (@sha256:…) pins it.',
      `portcullis:${version}`,
      { pattern: '^\\S+$' },
    ),
    imagePullPolicy: choice('When nodes fetch the image.', ['IfNotPresent', 'Always', 'Never']),
    imagePullSecrets: list(
      'Secrets for the registry of the image, for the pods of the controller: a list of {name: …}.',
    ),
    exemptNamespaces: texts(
      'Namespaces that policies of the whole cluster are never asked about: what a cluster needs to start.',
      ['kube-system', 'kube-public', 'kube-node-lease'],
    ),
    listenAddress: text(
      "Address that the pods of the controller and of policy servers listen on; '::', in quotes, where pods have addresses of IPv6, only or besides.",
      '0.0.0.0',
      { pattern: '^([0-9.]+|[0-9A-Fa-f:]+)$' },
    ),
    controller: section('The controller.', {
      replicas: integer('Pods of the controller; one leads, the others answer webhooks and wait.', 2, 0),
      logLevel: choice('Least important level to log.', ['info', 'trace', 'debug', 'warn', 'error']),
      logFormat: choice('Form of log lines.', ['json', 'text']),
      rolloutStrategy: choice(
        'What happens at the deadline of a rollout: replicas that can serve do so (Available), or none does (AllReplicas).',
        ['Available', 'AllReplicas'],
      ),
      progressDeadline: text('How long a rollout may make no progress.', '1m', { pattern: DURATION }),
      revisionHistoryLimit: integer('Revisions that do not serve, to be kept of each policy.', 10, 0),
      degradedPolicies: choice(
        'When the newest revision of a policy fails: the last good one serves on (serve), or its requests are rejected (reject).',
        ['serve', 'reject'],
      ),
      resources: object('What a pod of the controller is given, and may use at most.', {
        requests: { cpu: '100m', memory: '192Mi' },
        limits: { cpu: '2', memory: '512Mi' },
      }),
      nodeSelector: object('Labels of nodes that the pods may be on.'),
      tolerations: list('Taints of nodes that the pods tolerate.'),
      affinity: object('Where the pods may be. They are spread over nodes in any case.'),
      priorityClassName: text(
        'The priority class of the pods; system-cluster-critical where policies must hold first.',
        '',
      ),
      extraArgs: texts('More arguments of `portcullis controller`.'),
      extraEnv: list('More environment variables: a list of {name: …, value: …}.'),
    }),
    certificates: section('Certificates of webhooks, and between controller and policy servers.', {
      mode: choice(
        'Who keeps the Secrets with certificates: the controller with a CA of its own (own), or somebody else (external).',
        ['own', 'external'],
      ),
      caLifetime: text('How long a CA of the controller lives.', '730d', { pattern: DURATION }),
      caOverlap: text('How long a new CA is trusted before it signs, and an old one afterwards.', '15m', {
        pattern: DURATION,
      }),
      lifetime: text('How long the certificates that it signs live.', '90d', { pattern: DURATION }),
      certManager: section('Certificates that cert-manager keeps; set mode to external as well.', {
        enabled: flag('Create cert-manager Certificates for the controller and the default PolicyServer.', false),
        issuer: object('The issuer of the certificates. It must issue ca.crt: a CA issuer does.', {
          kind: 'Issuer',
          name: 'portcullis-ca',
        }),
      }),
    }),
    policyServer: section('The PolicyServer `default`, which policies are on that name none.', {
      enabled: flag('Create it.', true),
      replicas: integer('Its pods.', 2, 0),
      requests: object('What a pod is given.', { cpu: '250m', memory: '256Mi' }),
      limits: object('What a pod may use at most.', { cpu: '2', memory: '1Gi' }),
      imagePullSecret: text('A Secret for the registry of the image, for its pods.', ''),
      env: list('Environment variables of its pods: a list of {name: …, value: …}.'),
    }),
    recommendedPolicies: section('Policies to begin with. Their modules are part of Portcullis.', {
      enabled: flag('Create them.', false),
      mode: choice('monitor reports what would be rejected; protect rejects it.', ['monitor', 'protect']),
    }),
    networkPolicy: section('NetworkPolicies.', {
      enabled: flag(
        'Let only the webhook and the port for probes and metrics of the controller be reached. Those of policy servers are always there.',
        true,
      ),
    }),
    userRoles: section('ClusterRoles for people.', {
      enabled: flag('Add policies to the ClusterRoles view, edit and admin of Kubernetes (aggregation).', true),
    }),
    uninstallHook: section('With Helm only: what is done before the release is deleted.', {
      enabled: flag('Have a Job take the webhooks out and stop the controller, as `portcullis uninstall` does.', true),
    }),
    monitoring: section('For the Prometheus operator.', {
      podMonitor: section('Scraping.', { enabled: flag('Create PodMonitors.', false) }),
      prometheusRule: section('Alerts.', {
        enabled: flag('Create a PrometheusRule with the alerts of docs/install.md.', false),
      }),
      labels: object('Labels of both, as your Prometheus selects them.'),
    }),
  });
}

export function isSection(value: ValueDeclaration | ValueSection): value is ValueSection {
  return 'values' in value;
}
