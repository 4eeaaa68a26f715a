// Prometheus metrics of the server. Names of Kubewarden's policy server are kept; others have the prefix portcullis_.
// Docs: docs/metrics.md.
import { Counter, Gauge, Histogram, type Metric, Registry, collectDefaultMetrics } from 'prom-client';
import { OTHER_NAME } from '../../engine/definition/index.ts';
import type { Sample, SampledMetric } from '../../metrics/index.ts';
import type { ConnectionState } from '../../https/index.ts';
import { BucketHistogram, type HistogramSeries } from './bucket-histogram.ts';
import type { ChangeResult } from '../policies/policy-registry.ts';
import type { ObservedPolicy, PolicyMemory, RestartReason, ReviewRoute } from '../../evaluation/index.ts';
import type { ServedPolicyPhase } from '../status/served-policy-status.ts';
import { EvaluationCounts } from './evaluation-counts.ts';

/** Buckets for durations of evaluations and reviews, up to the longest webhook timeout. Seconds. */
const SECONDS_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10, 30];
/** The same for the histogram that Kubewarden has in milliseconds. */
const MILLISECONDS_BUCKETS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/** Buckets for the number of policies evaluated for a review. */
const POLICIES_BUCKETS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** Policies with series of their own: of sixteen lines each for the time in the policy, and of one each for phases and timeouts. */
export const MAX_LATENCY_POLICIES = 1_000;
export const MAX_PHASE_POLICIES = 10_000;
export const MAX_TIMEOUT_POLICIES = 1_000;

/** Values that are read when metrics are scraped. */
export interface ServerGauges {
  readonly waiting: () => number;
  readonly held: () => number;
  readonly slowOwners: () => number;
  readonly endingThreads: () => number;
  readonly phases: () => Iterable<readonly [policy: string, phase: ServedPolicyPhase]>;
  readonly memory: () => Pick<PolicyMemory, 'owners' | 'budget'>;
}

/** What the page shows. */
export interface ServerMetricsOptions {
  /** May contain other metrics. Default: a new one. */
  readonly registry?: Registry | undefined;
  /** See {@link EvaluationCounts}. */
  readonly labelledNamespaces?: number | undefined;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** The metrics of one policy server. */
export class ServerMetrics {
  readonly #registry: Registry;
  /** Counted here, because prom-client hashes labels with every increment. */
  readonly #evaluations: EvaluationCounts;
  readonly #reviewSeries = new Map<string, HistogramSeries>();
  /** Policies with a latency of their own. */
  readonly #latencyPolicies = new Set<string>();
  /** Timeouts by policy. */
  readonly #timedOut = new Map<string, number>();
  readonly #latency;
  readonly #review;
  readonly #policiesOfReview: HistogramSeries;
  readonly #reloads;
  readonly #reloadSeconds;
  readonly #restarts;
  readonly #refused;
  readonly #connectionsClosed;

  constructor(gauges: ServerGauges, options: ServerMetricsOptions = {}) {
    const { registry = new Registry(), labelledNamespaces, now } = options;
    this.#registry = registry;
    const registers = [registry];
    collectDefaultMetrics({ register: registry });
    this.#latency = new BucketHistogram({
      name: 'kubewarden_policy_evaluation_latency_milliseconds',
      help: 'Time in the policy, without waiting for a worker',
      bounds: MILLISECONDS_BUCKETS,
    });
    this.#register(this.#latency);
    this.#evaluations = new EvaluationCounts({
      labelledNamespaces,
      latencyOf: (labels) => this.#latencyOf(labels),
      ...(now === undefined ? {} : { now }),
    });
    this.#register({
      name: 'kubewarden_policy_evaluations_total',
      help: 'Evaluations by policy and verdict',
      type: 'counter',
      samples: () => this.#evaluations.samples(),
    });
    this.#register({
      name: 'portcullis_metrics_limited_total',
      help: 'Evaluations that are counted with fewer labels than others, because there are too many series',
      type: 'counter',
      samples: () => [{ value: this.#evaluations.limited }],
    });
    this.#register({
      name: 'portcullis_metrics_series_forgotten_total',
      help: 'Series of evaluations that were removed after an hour without an evaluation',
      type: 'counter',
      samples: () => [{ value: this.#evaluations.forgotten }],
    });
    this.#register({
      name: 'portcullis_metrics_namespace_labels',
      help: 'One while evaluations have a label for the namespace',
      type: 'gauge',
      samples: () => [{ value: this.#evaluations.hasNamespaces ? 1 : 0 }],
    });
    this.#review = new BucketHistogram({
      name: 'portcullis_review_duration_seconds',
      help: 'Time from a complete request to its answer, waiting for a worker included',
      bounds: SECONDS_BUCKETS,
    });
    this.#register(this.#review);
    const policiesPerReview = new BucketHistogram({
      name: 'portcullis_review_policies',
      help: 'Policies that a review of a bucket was for',
      bounds: POLICIES_BUCKETS,
    });
    this.#policiesOfReview = policiesPerReview.series({});
    this.#register(policiesPerReview);
    this.#reloads = new Counter({
      name: 'portcullis_policy_reloads_total',
      help: 'Changes of policies by result',
      labelNames: ['result'],
      registers,
    });
    this.#reloadSeconds = new Histogram({
      name: 'portcullis_policy_reload_duration_seconds',
      help: 'Time from a change of the policies file, or of the revision that is to serve, to the new version in every worker',
      buckets: SECONDS_BUCKETS,
      registers,
    });
    this.#register({
      name: 'portcullis_policy_timeouts_total',
      help: 'Evaluations that were cut off',
      type: 'counter',
      samples: () => [...this.#timedOut].map(([policy_name, value]) => ({ labels: { policy_name }, value })),
    });
    this.#restarts = new Counter({
      name: 'portcullis_worker_restarts_total',
      help: 'Workers that were replaced, by reason',
      labelNames: ['reason'],
      registers,
    });
    this.#refused = new Counter({
      name: 'portcullis_requests_refused_total',
      help: 'Requests answered without a policy, by HTTP status',
      labelNames: ['status'],
      registers,
    });
    this.#connectionsClosed = new Counter({
      name: 'portcullis_connections_closed_total',
      help: 'Connections that were closed to make room for new ones, by what they had shown',
      labelNames: ['state'],
      registers,
    });
    this.#register({
      name: 'portcullis_policy_phase',
      help: 'One for the phase that a policy is in',
      type: 'gauge',
      samples: () => phaseSamples(gauges.phases()),
    });
    this.#registry.registerMetric(
      new Gauge({
        name: 'portcullis_reviews_waiting',
        help: 'Reviews that wait for a worker',
        registers: [],
        collect() {
          this.set(gauges.waiting());
        },
      }),
    );
    this.#registry.registerMetric(
      new Gauge({
        name: 'portcullis_reviews_held',
        help: 'Reviews that wait or run',
        registers: [],
        collect() {
          this.set(gauges.held());
        },
      }),
    );
    this.#registry.registerMetric(
      new Gauge({
        name: 'portcullis_slow_owners',
        help: 'Namespaces, and policies of the cluster, whose reviews are restricted to a share of the workers',
        registers: [],
        collect() {
          this.set(gauges.slowOwners());
        },
      }),
    );
    this.#registry.registerMetric(
      new Gauge({
        name: 'portcullis_ending_threads',
        help: 'Evaluation threads that were ended and still run',
        registers: [],
        collect() {
          this.set(gauges.endingThreads());
        },
      }),
    );
    this.#registry.registerMetric(
      new Gauge({
        name: 'portcullis_policy_memory_bytes',
        help: 'Memory that WebAssembly policies may hold: their code, and an instance of the largest in each thread',
        labelNames: ['owner'],
        registers: [],
        collect() {
          this.reset();
          for (const { owner, bytes } of gauges.memory().owners()) {
            this.set({ owner }, bytes);
          }
        },
      }),
    );
    this.#registry.registerMetric(
      new Gauge({
        name: 'portcullis_policy_memory_budget_bytes',
        help: 'Memory that all WebAssembly policies together may hold',
        registers: [],
        collect() {
          this.set(gauges.memory().budget.bytes);
        },
      }),
    );
  }

  /** Counts an answered review. `observed`: all evaluations. Milliseconds. */
  reviewed(route: ReviewRoute, observed: readonly ObservedPolicy[], totalMs: number): void {
    this.#reviewSeriesOf(route).observe(totalMs / 1000);
    if (route === 'admit') {
      this.#policiesOfReview.observe(new Set(observed.map(({ observation }) => observation.policy)).size);
    }
    for (const { observation, evaluationMs } of observed) {
      this.#evaluations.count(observation, evaluationMs);
    }
  }

  /** Removes the series of a deleted policy. */
  removePolicy(policy: string): void {
    this.#evaluations.removePolicy(policy);
    this.#latencyPolicies.delete(policy);
    this.#latency.remove(({ policy_name }) => policy_name === policy);
    this.#timedOut.delete(policy);
  }

  #latencyOf(labels: { readonly policy_name: string; readonly policy_mode: string }): HistogramSeries {
    const { policy_name } = labels;
    if (this.#latencyPolicies.size < MAX_LATENCY_POLICIES) {
      this.#latencyPolicies.add(policy_name);
    }
    return this.#latency.series(
      this.#latencyPolicies.has(policy_name) ? labels : { ...labels, policy_name: OTHER_NAME },
    );
  }

  #reviewSeriesOf(route: ReviewRoute): HistogramSeries {
    const series = this.#reviewSeries.get(route) ?? this.#review.series({ route });
    this.#reviewSeries.set(route, series);
    return series;
  }

  reloaded(result: ChangeResult): void {
    this.#reloads.inc({ result });
  }

  reloadTook(ms: number): void {
    this.#reloadSeconds.observe(ms / 1000);
  }

  timedOut(policy: string): void {
    const isShown = this.#timedOut.has(policy) || this.#timedOut.size < MAX_TIMEOUT_POLICIES;
    const name = isShown ? policy : OTHER_NAME;
    this.#timedOut.set(name, (this.#timedOut.get(name) ?? 0) + 1);
  }

  restarted(reason: RestartReason): void {
    this.#restarts.inc({ reason });
  }

  connectionClosed(state: ConnectionState): void {
    this.#connectionsClosed.inc({ state });
  }

  refused(status: number): void {
    this.#refused.inc({ status: String(status) });
  }

  #register(metric: SampledMetric): void {
    // Pages read samples; see metricsPage.
    this.#registry.registerMetric(metric as unknown as Metric);
  }
}

/** Policies that are not Active come first, as they are what to look at. With more, `other` counts the rest by phase. */
function* phaseSamples(phases: Iterable<readonly [policy: string, phase: ServedPolicyPhase]>): Generator<Sample> {
  const all = [...phases];
  const [active, others] = [
    all.filter(([, phase]) => phase === 'Active'),
    all.filter(([, phase]) => phase !== 'Active'),
  ];
  const rest = new Map<ServedPolicyPhase, number>();
  for (const [index, [policy_name, phase]] of [...others, ...active].entries()) {
    if (index < MAX_PHASE_POLICIES) {
      yield { labels: { policy_name, phase }, value: 1 };
    } else {
      rest.set(phase, (rest.get(phase) ?? 0) + 1);
    }
  }
  for (const [phase, value] of rest) {
    yield { labels: { policy_name: OTHER_NAME, phase }, value };
  }
}
