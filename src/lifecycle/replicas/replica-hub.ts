// The replicas of a cluster, as the leader knows them.
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import { POLICY_SERVER_REPLICAS, POLICY_SERVERS } from '../../resources/index.ts';
import type { PolicyServerObject, PolicyServerReplica } from '../../resources/index.ts';
import { aborted, SYSTEM_CLOCK, Waiting } from '../../runtime/index.ts';
import type { Clock, ObjectCache, Runnable, SharedCaches } from '../../runtime/index.ts';
import type { ControlTls, PrevalidationRequest, PrevalidationResult } from '../../control/index.ts';
import { errorText } from '../../values/index.ts';
import { ExceptionReports } from './exception-reports.ts';
import { MonitoredReports } from './monitored-reports.ts';
import type { KnownReplica, ReplicaChange, ReplicaDirectory } from './replica-directory.ts';
import { ReplicaFleet } from './replica-fleet.ts';
import { REPLICA_TIMING } from './replica-timing.ts';
import type { ReplicaTiming } from './replica-timing.ts';

/** Delay before a policy tries again to find a replica for pre-validation. Milliseconds. */
const NO_REPLICA_WAIT_MS = 1_000;
/** The reason of a policy that waits for a replica to pre-validate it. */
const NO_REPLICA_REASON = 'NoReplicaAnswers';

const NOTHING_MONITORED = new MonitoredReports();

export interface ReplicaHubOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** Namespace of PolicyServerReplicas. */
  readonly namespace: string;
  /** Certificates of control ports; read again for each connection. */
  readonly tls: ControlTls;
  readonly log: Logger;
  /** Registry of `portcullis_replicas`. Default: none. */
  readonly registry?: Registry;
  /** Default: {@link REPLICA_TIMING}. */
  readonly timing?: Partial<ReplicaTiming>;
  readonly clock?: Clock;
  /** 0 to below 1. Default: Math.random. */
  readonly random?: () => number;
}

/**
 * Finds replicas by their PolicyServerReplica objects, keeps a link to each, and removes those that have ended. Only
 * the leader runs it, once at a time. In normal operation it uses the API server only for a watch.
 */
export class ReplicaHub implements ReplicaDirectory, Runnable {
  readonly name = 'replicas';
  /** What exceptions let through, see {@link ExceptionReports}. */
  readonly exceptions = new ExceptionReports();
  /** Resolves when the objects of replicas are known, before the replicas have reported. */
  readonly ready: Promise<void>;
  readonly #options: ReplicaHubOptions;
  readonly #timing: ReplicaTiming;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #replicas: ObjectCache<PolicyServerReplica>;
  readonly #servers: ObjectCache<PolicyServerObject>;
  readonly #listeners = new Set<(change: ReplicaChange) => void>();
  readonly #isReady = Promise.withResolvers<void>();
  #fleet: ReplicaFleet | undefined;

  constructor(options: ReplicaHubOptions) {
    const { caches, namespace, registry } = options;
    this.#options = options;
    this.#timing = { ...REPLICA_TIMING, ...options.timing };
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#log = options.log.child({ component: 'replicas' });
    this.#replicas = caches.cache(POLICY_SERVER_REPLICAS, { namespace });
    this.#servers = caches.cache(POLICY_SERVERS);
    this.ready = this.#isReady.promise;
    if (registry !== undefined) {
      this.#registerGauge(registry);
    }
  }

  replicas(policyServer: string): readonly KnownReplica[] | undefined {
    return this.#fleet?.replicas(policyServer);
  }

  get monitored(): MonitoredReports {
    return this.#fleet?.monitored ?? NOTHING_MONITORED;
  }

  /** Whether a replica may still report. @param name of its PolicyServerReplica */
  mayReport(name: string): boolean {
    const key = { namespace: this.#options.namespace, name };
    return this.#replicas.get(key) !== undefined || this.#fleet?.isEnding(name) === true;
  }

  subscribe(listener: (change: ReplicaChange) => void): () => void {
    // A new function for each call, so that a listener can subscribe twice.
    const own = (change: ReplicaChange): void => listener(change);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  async prevalidate(
    policyServer: string,
    request: PrevalidationRequest,
    signal: AbortSignal,
  ): Promise<PrevalidationResult> {
    const result = await this.#fleet?.prevalidate(policyServer, request, signal);
    signal.throwIfAborted();
    if (result === undefined || 'failure' in result) {
      const detail = result === undefined ? 'replicas are not known yet' : result.failure;
      throw new Waiting(NO_REPLICA_REASON, NO_REPLICA_WAIT_MS, `policy server ${policyServer}: ${detail}`);
    }
    return result;
  }

  /** Runs until `signal` is aborted. Can be started again. */
  async start(signal: AbortSignal): Promise<void> {
    await Promise.race([aborted(signal), Promise.all([this.#replicas.synced, this.#servers.synced])]);
    if (signal.aborted) {
      return;
    }
    // Another leader may have written, and forgotten, more than is known here.
    this.exceptions.clear();
    const { cluster, tls } = this.#options;
    const fleet = new ReplicaFleet({
      cluster,
      tls,
      timing: this.#timing,
      clock: this.#clock,
      random: this.#options.random ?? Math.random,
      log: this.#log,
      exceptions: this.exceptions,
      notify: (change) => this.#notify(change),
    });
    this.#fleet = fleet;
    const disconnect = this.#replicas.subscribe((change) => fleet.replicaChanged(change));
    fleet.started(this.#servers.list().map(({ metadata }) => metadata.name ?? ''));
    this.#isReady.resolve();
    await aborted(signal);
    disconnect();
    this.#fleet = undefined;
    await fleet.stop();
  }

  #notify(change: ReplicaChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#log.error({ error: errorText(error) }, 'a listener of replicas failed');
      }
    }
  }

  #registerOffsets(registry: Registry): void {
    const known = (): Iterable<KnownReplica> => this.#fleet?.known() ?? [];
    const gauge = new Gauge({
      name: 'portcullis_replica_clock_offset_seconds',
      help: 'How far the clocks of replicas are ahead of that of the controller; 0: less than 2 s',
      labelNames: ['policy_server', 'replica'],
      registers: [registry],
      collect() {
        gauge.reset();
        for (const { policyServer, name, clockOffsetMs } of known()) {
          if (clockOffsetMs !== undefined) {
            gauge.set({ policy_server: policyServer, replica: name }, clockOffsetMs / 1_000);
          }
        }
      },
    });
  }

  #registerGauge(registry: Registry): void {
    this.#registerOffsets(registry);
    const states = (): ReadonlyMap<string, KnownReplica[]> =>
      Map.groupBy(this.#fleet?.known() ?? [], ({ policyServer }) => policyServer);
    const gauge = new Gauge({
      name: 'portcullis_replicas',
      help: 'Replicas of policy servers by their connection to the controller',
      labelNames: ['policy_server', 'state'],
      registers: [registry],
      collect() {
        gauge.reset();
        for (const [policyServer, replicas] of states()) {
          for (const state of ['connecting', 'connected', 'lost'] as const) {
            const count = replicas.filter((replica) => replica.state === state).length;
            gauge.set({ policy_server: policyServer, state }, count);
          }
        }
      },
    });
  }
}
