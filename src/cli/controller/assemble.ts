// What a controller is made of: caches, replicas, policies, the webhook for our own kinds, events. One assembly for the
// command `controller` and for `start`.
import type { Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import {
  LifecycleControllers,
  OwnKindsWebhook,
  type OwnKindsWebhookOptions,
  PolicyServerController,
  ReplicaHub,
  type RolloutSettings,
  type WebhookTarget,
} from '../../lifecycle/index.ts';
import {
  aborted,
  EventRecorder,
  type LeaderElector,
  withWriteBackoff,
  type Runnable,
  Runtime,
  type RuntimeMetrics,
  SharedCaches,
} from '../../runtime/index.ts';
import type { ControlTls } from '../../control/index.ts';
import type { Logger } from '../../log/index.ts';
import { type ManagedOptions, ManagedServers } from './managed-servers.ts';

/** Who reports events. */
const COMPONENT = 'portcullis-controller';

export interface ControllerOptions {
  /** Seen with the controller's own rights, see CONTROLLER_RULES. */
  readonly cluster: Cluster;
  /** Default: this process leads. */
  readonly elector?: LeaderElector;
  /** Of the product. */
  readonly namespace: string;
  readonly settings: RolloutSettings;
  /** Certificates for talking to policy servers. */
  readonly tls: ControlTls;
  /** Where the API server reaches the policy servers of a name; or how they are managed. */
  readonly servers: ((policyServer: string) => WebhookTarget) | ManagedOptions;
  /** Namespaces that policies of the whole cluster are never asked about. Default: those that a cluster starts with. */
  readonly exemptNamespaces?: readonly string[];
  /**
   * Users that policies are never asked about: the product's own; a star at the end stands for any end. Besides them those that
   * managed policy servers run as.
   */
  readonly identities: readonly string[];
  /** Default: policies are not checked when they are written. */
  readonly webhook?: WebhookOptions;
  readonly registry: Registry;
  readonly metrics: RuntimeMetrics;
  readonly log: Logger;
}

/** The webhook for our own kinds; without `ca` where policy servers are managed. */
export type WebhookOptions = Omit<OwnKindsWebhookOptions, 'cluster' | 'caches' | 'log' | 'metrics' | 'ca'> &
  Partial<Pick<OwnKindsWebhookOptions, 'ca'>>;

/** A controller that can be run. */
export interface AssembledController {
  readonly runtime: Runtime;
  /** Resolves when its caches are filled, and its webhook answers; it may still be waiting to lead. */
  readonly ready: Promise<unknown>;
  /** Resolves when it works: leads, and has looked at every policy it knows of. */
  readonly working: Promise<unknown>;
  readonly webhook: OwnKindsWebhook | undefined;
}

export function assembleController(options: ControllerOptions): AssembledController {
  const { cluster, elector, namespace, tls, log, registry, metrics } = options;
  const caches = new SharedCaches({ cluster, log, metrics });
  const events = new EventRecorder({ cluster, component: COMPONENT, log, metrics });
  const shared = { cluster, caches, namespace, events, log, metrics, registry };
  const managed = typeof options.servers === 'function' ? undefined : new ManagedServers(options.servers, shared);
  const replicas = new ReplicaHub({ cluster, caches, namespace, tls, log, registry });
  const policyServers = new PolicyServerController({
    ...shared,
    cluster: withWriteBackoff(cluster, { log }),
    replicas,
    ...(managed === undefined ? {} : { objects: managed.objects }),
  });
  const { exemptNamespaces, identities, servers, settings } = options;
  const policies = new LifecycleControllers({
    ...shared,
    settings,
    replicas,
    identities: { [Symbol.iterator]: () => [...identities, ...(managed?.identities() ?? [])].values() },
    ...(exemptNamespaces === undefined ? {} : { exemptNamespaces }),
    target: typeof servers === 'function' ? servers : (name) => managed?.target(name),
    ...(managed === undefined
      ? {}
      : { isOurs: (name) => managed.ownership.isOurs(name), isReachable: (name) => managed.isReachable(name) }),
  });
  const webhook =
    options.webhook === undefined
      ? undefined
      : new OwnKindsWebhook({
          ca: managed?.certificates ?? '',
          ...options.webhook,
          reached: managed?.reached,
          cluster: withWriteBackoff(cluster, { log }),
          caches,
          log,
          metrics,
        });
  const runtime = new Runtime({ log, ...(elector === undefined ? {} : { elector }) }).add('cache', caches);
  const cached = Promise.withResolvers<void>();
  runtime.add(
    'server',
    once('cached', () => cached.resolve()),
  );
  if (webhook !== undefined) {
    runtime.add('server', webhook).add('leader', webhook.registration);
  }
  runtime.add(
    'leader',
    once('leading', () => log.info('leading')),
    events,
    replicas,
    policyServers,
    policies,
  );
  if (managed !== undefined) {
    const { certificates, files, objects, ownership, reached } = managed;
    reached.subscribe(() => policies.targetsChanged());
    certificates.subscribe(() => policies.targetsChanged());
    ownership.subscribe((name) => policies.policyServerChanged(name));
    runtime.add('cache', ...files).add('leader', certificates, objects);
  }
  return {
    runtime,
    ready: Promise.all([cached.promise, webhook?.ready]),
    working: Promise.all([policies.ready, webhook?.registration.ready]),
    webhook,
  };
}

/** Does something when its turn has come. */
function once(name: string, begun: () => void): Runnable {
  return {
    name,
    start: async (signal) => {
      begun();
      await aborted(signal);
    },
  };
}
