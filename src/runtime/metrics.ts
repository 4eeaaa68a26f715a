// Metrics of the runtime for Prometheus. Names are those of client-go and controller-runtime, so that existing
// dashboards work. Docs: docs/runtime.md.
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import type { ReconcileOutcome } from './reconcile-outcome.ts';
import type { WorkQueue, WorkQueueObserver } from './work-queue.ts';

/** From an idle queue to a stuck one. Seconds. */
const QUEUE_BUCKETS = [0.0001, 0.001, 0.01, 0.1, 1, 10, 60, 300, 1000];
/** From a lookup in a cache to a wait for a rollout. Seconds. */
const RECONCILE_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120];

/** Metrics of a cache. */
export interface CacheStats {
  readonly name: string;
  readonly size: number;
  readonly isSynced: boolean;
  /** Age of the cache's view: time since the last message of the watch. Undefined before the first one. */
  readonly lagMs: number | undefined;
  readonly events: number;
  /** Full lists of the type. */
  readonly lists: number;
  readonly failures: number;
}

/** The result of an event: label of `portcullis_events_total`. */
export type EventResult = 'written' | 'repeated' | 'suppressed' | 'dropped' | 'failed';

/** The metrics of one runtime, in a registry that may be shared. */
export class RuntimeMetrics {
  readonly #queues = new Map<string, WorkQueue>();
  readonly #caches = new Set<() => Iterable<CacheStats>>();
  readonly #adds;
  readonly #waited;
  readonly #worked;
  readonly #retries;
  readonly #reconciles;
  readonly #reconcileErrors;
  readonly #reconcileSeconds;
  readonly #workers;
  readonly #maxWorkers;
  readonly #events;
  readonly #isLeader;
  readonly #leaderChanges;

  constructor(registry: Registry) {
    const registers = [registry];
    const name = ['name'] as const;
    const controller = ['controller'] as const;
    this.#adds = new Counter({ name: 'workqueue_adds_total', help: 'Items added', labelNames: name, registers });
    this.#waited = new Histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'Time from when an item may be taken to when it is',
      labelNames: name,
      buckets: QUEUE_BUCKETS,
      registers,
    });
    this.#worked = new Histogram({
      name: 'workqueue_work_duration_seconds',
      help: 'Time from when an item is taken to when it is done',
      labelNames: name,
      buckets: QUEUE_BUCKETS,
      registers,
    });
    this.#retries = new Counter({
      name: 'workqueue_retries_total',
      help: 'Items added again because they failed',
      labelNames: name,
      registers,
    });
    this.#queueGauge(registry, 'workqueue_depth', 'Items that could be taken', (queue) => queue.depth);
    this.#queueGauge(registry, 'workqueue_delayed', 'Items that wait for their time', (queue) => queue.delayed);
    this.#queueGauge(
      registry,
      'workqueue_unfinished_work_seconds',
      'Time spent so far on items that are worked on',
      (queue) => queue.unfinishedMs / 1000,
    );
    this.#queueGauge(
      registry,
      'workqueue_longest_running_processor_seconds',
      'Time spent so far on the item that is worked on for the longest time',
      (queue) => queue.longestRunningMs / 1000,
    );
    this.#reconciles = new Counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Reconciliations by how they ended',
      labelNames: ['controller', 'result'],
      registers,
    });
    this.#reconcileErrors = new Counter({
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Reconciliations that failed and are tried again',
      labelNames: controller,
      registers,
    });
    this.#reconcileSeconds = new Histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Time of a reconciliation',
      labelNames: controller,
      buckets: RECONCILE_BUCKETS,
      registers,
    });
    this.#workers = new Gauge({
      name: 'controller_runtime_active_workers',
      help: 'Reconciliations under way',
      labelNames: controller,
      registers,
    });
    this.#maxWorkers = new Gauge({
      name: 'controller_runtime_max_concurrent_reconciles',
      help: 'Most reconciliations at once',
      labelNames: controller,
      registers,
    });
    this.#events = new Counter({
      name: 'portcullis_events_total',
      help: 'Events by what became of them: written, repeated (counted in one that is there), suppressed, dropped, failed',
      labelNames: ['result'],
      registers,
    });
    this.#isLeader = new Gauge({
      name: 'leader_election_master_status',
      help: 'One while this process is the leader',
      labelNames: name,
      registers,
    });
    this.#leaderChanges = new Counter({
      name: 'portcullis_leader_changes_total',
      help: 'Times that this process became or ceased to be the leader',
      labelNames: ['name', 'change'],
      registers,
    });
    this.#cacheGauge(registry, 'portcullis_cache_objects', 'Objects in a cache', ({ size }) => size);
    this.#cacheGauge(registry, 'portcullis_cache_synced', 'One when a cache has shown its cluster', ({ isSynced }) =>
      isSynced ? 1 : 0,
    );
    this.#cacheGauge(
      registry,
      'portcullis_cache_lag_seconds',
      'How far behind its cluster a cache may be',
      ({ lagMs }) => (lagMs === undefined ? undefined : lagMs / 1000),
    );
    this.#cacheCounter(
      registry,
      'portcullis_cache_watch_events_total',
      'Watch events taken in',
      ({ events }) => events,
    );
    this.#cacheCounter(registry, 'portcullis_cache_lists_total', 'Full lists', ({ lists }) => lists);
    this.#cacheCounter(
      registry,
      'portcullis_cache_failures_total',
      'Lists and watches that failed',
      ({ failures }) => failures,
    );
  }

  /** Registers a queue; it replaces an earlier one of the same name. */
  queue(name: string): { readonly observer: WorkQueueObserver; readonly attach: (queue: WorkQueue) => () => void } {
    const labels = { name };
    const waited = this.#waited.labels(labels);
    const worked = this.#worked.labels(labels);
    const adds = this.#adds.labels(labels);
    const retries = this.#retries.labels(labels);
    return {
      observer: {
        added: () => adds.inc(),
        taken: (seconds) => waited.observe(seconds),
        done: (seconds) => worked.observe(seconds),
        retried: () => retries.inc(),
      },
      attach: (queue) => {
        this.#queues.set(name, queue);
        return () => {
          if (this.#queues.get(name) === queue) {
            this.#queues.delete(name);
          }
        };
      },
    };
  }

  /** Registers a controller. */
  controller(name: string, concurrency: number): void {
    this.#maxWorkers.set({ controller: name }, concurrency);
    this.#workers.set({ controller: name }, 0);
  }

  reconcileStarted(controller: string): void {
    this.#workers.inc({ controller });
  }

  reconcileEnded(controller: string, result: ReconcileOutcome['kind'], seconds: number): void {
    this.#workers.dec({ controller });
    this.#reconciles.inc({ controller, result });
    this.#reconcileSeconds.observe({ controller }, seconds);
    if (result === 'failed') {
      this.#reconcileErrors.inc({ controller });
    }
  }

  event(result: EventResult): void {
    this.#events.inc({ result });
  }

  leading(name: string, isLeader: boolean): void {
    this.#isLeader.set({ name }, isLeader ? 1 : 0);
  }

  leaderChanged(name: string, change: 'acquired' | 'lost' | 'released'): void {
    this.#leaderChanges.inc({ name, change });
  }

  /** Registers caches; `stats` is called for each scrape. Returns a function that removes them. */
  caches(stats: () => Iterable<CacheStats>): () => void {
    this.#caches.add(stats);
    return () => this.#caches.delete(stats);
  }

  *#cacheStats(): Iterable<CacheStats> {
    for (const stats of this.#caches) {
      yield* stats();
    }
  }

  #queueGauge(registry: Registry, name: string, help: string, value: (queue: WorkQueue) => number): void {
    const values = () => Array.from(this.#queues, ([queue, state]) => [queue, value(state)] as const);
    registry.registerMetric(new Gauge(scraped(name, help, 'name', values)));
  }

  #cacheGauge(registry: Registry, name: string, help: string, value: (stats: CacheStats) => number | undefined): void {
    registry.registerMetric(new Gauge(scraped(name, help, 'cache', this.#cacheValues(value))));
  }

  #cacheCounter(registry: Registry, name: string, help: string, value: (stats: CacheStats) => number): void {
    registry.registerMetric(new Counter(scraped(name, help, 'cache', this.#cacheValues(value))));
  }

  #cacheValues(value: (stats: CacheStats) => number | undefined): () => LabelledValues {
    return () => Array.from(this.#cacheStats(), (stats) => [stats.name, value(stats)] as const);
  }
}

type LabelledValues = readonly (readonly [label: string, value: number | undefined])[];

/** The configuration of a metric whose values are read for each scrape; undefined values are left out. */
function scraped(name: string, help: string, label: string, values: () => LabelledValues) {
  return {
    name,
    help,
    labelNames: [label],
    registers: [],
    collect(this: Gauge | Counter): void {
      this.reset();
      for (const [labelled, value] of values()) {
        if (value !== undefined) {
          this.inc({ [label]: labelled }, value);
        }
      }
    },
  };
}
