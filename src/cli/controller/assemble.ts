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
  type Runnable,
  Runtime,
  type RuntimeMetrics,
  SharedCaches,
} from '../../runtime/index.ts';
import type { ControlTls, Logger } from '../../server/index.ts';

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
  readonly tls: ControlTls;
  /** Where the API server reaches the policy servers of a name. */
  readonly target: (policyServer: string) => WebhookTarget;
  /** Default: policies are not checked when they are written. */
  readonly webhook?: Omit<OwnKindsWebhookOptions, 'cluster' | 'caches' | 'log' | 'metrics'>;
  readonly registry: Registry;
  readonly metrics: RuntimeMetrics;
  readonly log: Logger;
}

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
  const replicas = new ReplicaHub({ cluster, caches, namespace, tls, log, registry });
  const policyServers = new PolicyServerController({ cluster, caches, replicas, log, metrics });
  const { settings, target } = options;
  const policies = new LifecycleControllers({
    cluster,
    caches,
    namespace,
    settings,
    replicas,
    target,
    events,
    log,
    metrics,
    registry,
  });
  const webhook =
    options.webhook === undefined
      ? undefined
      : new OwnKindsWebhook({ ...options.webhook, cluster, caches, log, metrics });
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
