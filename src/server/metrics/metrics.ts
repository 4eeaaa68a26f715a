// Prometheus metrics of the server. Names of Kubewarden's policy server are kept; others have the prefix portcullis_.
// Docs: docs/metrics.md.
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { OTHER_NAME } from '../../engine/definition/index.ts';
import type { Observation } from '../../engine/index.ts';
import type { ConnectionState } from '../../https/index.ts';
import { BucketHistogram, type HistogramSeries } from './bucket-histogram.ts';
import type { ChangeResult } from '../policies/policy-registry.ts';
import type { PolicyMemory } from '../policies/policy-memory.ts';
import type { PolicyPhase } from '../status/policy-status.ts';
import type { ObservedPolicy, RestartReason, Route } from '../../evaluation/index.ts';

/** Buckets for durations of evaluations and reviews, up to the longest webhook timeout. Seconds. */
const SECONDS_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10, 30];
/** The same for the histogram that Kubewarden has in milliseconds. */
const MILLISECONDS_BUCKETS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/** Buckets for the number of policies evaluated for a review. */
const POLICIES_BUCKETS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** Maximum number of kind and namespace pairs with their own labels: 3,500 namespaces with a few kinds each. */
export const MAX_RESOURCES = 20_000;

/** A policy may return any number as its code; only HTTP status codes get their own label. */
function errorCodeLabel(code: number): string {
  return code >= 100 && code < 600 ? String(code) : OTHER_NAME;
}

/** Values that are read when metrics are scraped. */
export interface ServerGauges {
  readonly waiting: () => number;
  readonly held: () => number;
  readonly slowOwners: () => number;
  readonly phases: () => Iterable<readonly [policy: string, phase: PolicyPhase]>;
  readonly memory: () => Pick<PolicyMemory, 'owners' | 'budget'>;
}

/** Evaluations with equal labels. */
interface EvaluationSeries {
  readonly labels: Readonly<Record<string, string>>;
  count: number;
  readonly latency: HistogramSeries;
}

/** The metrics of one policy server. */
export class ServerMetrics {
  readonly #registry: Registry;
  /** By policy and labels. Counted here, because prom-client hashes labels with every increment. */
  readonly #evaluations = new Map<string, Map<string, EvaluationSeries>>();
  /** Series of known observations; see ObservationReceiver. */
  #seriesOf = new WeakMap<Observation, EvaluationSeries>();
  readonly #reviewSeries = new Map<string, HistogramSeries>();
  /** Kind and namespace pairs with their own labels. */
  readonly #resources = new Set<string>();
  readonly #latency;
  readonly #review;
  readonly #policiesOfReview: HistogramSeries;
  readonly #reloads;
  readonly #reloadSeconds;
  readonly #timeouts;
  readonly #restarts;
  readonly #refused;
  readonly #connectionsClosed;

  /** @param registry may contain other metrics */
  constructor(gauges: ServerGauges, registry: Registry = new Registry()) {
    this.#registry = registry;
    const registers = [registry];
    collectDefaultMetrics({ register: registry });
    const series = this.#evaluations;
    this.#registry.registerMetric(
      new Counter({
        name: 'kubewarden_policy_evaluations_total',
        help: 'Evaluations by policy and verdict',
        labelNames: [
          'policy_name',
          'policy_mode',
          'resource_kind',
          'resource_namespace',
          'resource_request_operation',
          'accepted',
          'mutated',
          'request_origin',
          'error_code',
        ],
        registers: [],
        collect() {
          this.reset();
          for (const ofPolicy of series.values()) {
            for (const { labels, count } of ofPolicy.values()) {
              this.inc(labels, count);
            }
          }
        },
      }),
    );
    this.#latency = new BucketHistogram({
      name: 'kubewarden_policy_evaluation_latency_milliseconds',
      help: 'Time in the policy, without waiting for a worker',
      bounds: MILLISECONDS_BUCKETS,
    });
    this.#registry.registerMetric(this.#latency.asMetric());
    this.#review = new BucketHistogram({
      name: 'portcullis_review_duration_seconds',
      help: 'Time from a complete request to its answer, waiting for a worker included',
      bounds: SECONDS_BUCKETS,
    });
    this.#registry.registerMetric(this.#review.asMetric());
    const policiesPerReview = new BucketHistogram({
      name: 'portcullis_review_policies',
      help: 'Policies that a review of a bucket was for',
      bounds: POLICIES_BUCKETS,
    });
    this.#policiesOfReview = policiesPerReview.series({});
    this.#registry.registerMetric(policiesPerReview.asMetric());
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
    this.#timeouts = new Counter({
      name: 'portcullis_policy_timeouts_total',
      help: 'Evaluations that were cut off',
      labelNames: ['policy_name'],
      registers,
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
    this.#registry.registerMetric(
      new Gauge({
        name: 'portcullis_policy_phase',
        help: 'One for the phase that a policy is in',
        labelNames: ['policy_name', 'phase'],
        registers: [],
        collect() {
          this.reset();
          for (const [policy_name, phase] of gauges.phases()) {
            this.set({ policy_name, phase }, 1);
          }
        },
      }),
    );
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
  reviewed(route: Route, observed: readonly ObservedPolicy[], totalMs: number): void {
    this.#reviewSeriesOf(route).observe(totalMs / 1000);
    if (route === 'admit') {
      this.#policiesOfReview.observe(new Set(observed.map(({ observation }) => observation.policy)).size);
    }
    for (const { observation, evaluationMs } of observed) {
      this.#evaluated(observation, evaluationMs);
    }
  }

  #evaluated(observation: Observation, evaluationMs: number): void {
    const series = this.#seriesOf.get(observation) ?? this.#createSeries(observation);
    series.count += 1;
    series.latency.observe(evaluationMs);
  }

  /** Removes the series of a deleted policy. */
  removePolicy(policy: string): void {
    const gone = [...(this.#evaluations.get(policy)?.values() ?? [])];
    this.#evaluations.delete(policy);
    for (const { latency } of gone) {
      this.#latency.remove(latency);
    }
    this.#seriesOf = new WeakMap();
    this.#timeouts.remove({ policy_name: policy });
  }

  #reviewSeriesOf(route: Route): HistogramSeries {
    const series = this.#reviewSeries.get(route) ?? this.#review.series({ route });
    this.#reviewSeries.set(route, series);
    return series;
  }

  #createSeries(observation: Observation): EvaluationSeries {
    const { policy: policy_name, mode: policy_mode, route, accepted, mutated, errorCode } = observation;
    const labels = {
      policy_name,
      policy_mode,
      accepted: String(accepted),
      mutated: String(mutated),
      request_origin: route === 'audit' ? 'audit' : 'validate',
      ...this.#resourceLabels(observation),
      ...(errorCode === undefined ? {} : { error_code: errorCodeLabel(errorCode) }),
    };
    const key = JSON.stringify(labels);
    const latency = this.#latency.series({ policy_name, policy_mode });
    const ofPolicy = this.#evaluations.get(policy_name) ?? new Map<string, EvaluationSeries>();
    this.#evaluations.set(policy_name, ofPolicy);
    const series = ofPolicy.get(key) ?? { labels, count: 0, latency };
    ofPolicy.set(key, series);
    this.#seriesOf.set(observation, series);
    return series;
  }

  /** Labels from reviews, bounded in number. */
  #resourceLabels({ kind, namespace, operation }: Observation): Record<string, string> {
    if (kind === undefined) {
      return {};
    }
    const resource = `${kind}/${namespace ?? ''}`;
    const isCounted = this.#resources.has(resource) || this.#resources.size < MAX_RESOURCES;
    if (isCounted) {
      this.#resources.add(resource);
    }
    return {
      resource_kind: isCounted ? kind : OTHER_NAME,
      ...(namespace === undefined ? {} : { resource_namespace: isCounted ? namespace : OTHER_NAME }),
      ...(operation === undefined ? {} : { resource_request_operation: operation }),
    };
  }

  reloaded(result: ChangeResult): void {
    this.#reloads.inc({ result });
  }

  reloadTook(ms: number): void {
    this.#reloadSeconds.observe(ms / 1000);
  }

  timedOut(policy: string): void {
    this.#timeouts.inc({ policy_name: policy });
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

  /** All metrics in the Prometheus text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }
}
