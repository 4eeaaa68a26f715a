// Counts evaluations by labels. Who sends reviews chooses some of the labels, so the series are limited in number; what has no
// series of its own is counted under `other`, so that sums stay right.
import { OTHER_NAME } from '../../engine/definition/index.ts';
import type { Observation } from '../../engine/index.ts';
import type { Sample } from '../../metrics/index.ts';
import type { HistogramSeries } from './bucket-histogram.ts';

/** Series with kind, namespace, operation and code: 3,500 namespaces with two policies and a few kinds and operations each. */
export const MAX_DETAILED_SERIES = 20_000;
/** All series by policy: half again as many. Then all further policies share a few series. */
export const MAX_EVALUATION_SERIES = 30_000;
/** Namespaces with a label of their own. With more, no namespace has one: in dashboards they are read by name. */
const DEFAULT_LABELLED_NAMESPACES = 200;
/** A series that nothing was counted in for so long is forgotten, such as that of a deleted namespace. Milliseconds. */
const FORGOTTEN_AFTER_MS = 3_600_000;

/** Evaluations with equal labels. */
interface EvaluationSeries {
  readonly key: string;
  readonly labels: Readonly<Record<string, string>>;
  count: number;
  /** Milliseconds of a monotonic clock. */
  countedAt: number;
  /** Whether the series was removed. */
  isGone: boolean;
  readonly latency: HistogramSeries;
}

type Labels = Readonly<Record<string, string>>;

interface EvaluationCountsOptions {
  /** Namespaces with a label of their own; 0: none has one. Default: {@link DEFAULT_LABELLED_NAMESPACES}. */
  readonly labelledNamespaces?: number | undefined;
  readonly latencyOf: (labels: { readonly policy_name: string; readonly policy_mode: string }) => HistogramSeries;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

export class EvaluationCounts {
  readonly #options: EvaluationCountsOptions;
  readonly #maxNamespaces: number;
  readonly #now: () => number;
  readonly #series = new Map<string, EvaluationSeries>();
  readonly #ofPolicy = new Map<string, Set<EvaluationSeries>>();
  /** Series of known observations; see ObservationReceiver. */
  readonly #seriesOf = new WeakMap<Observation, EvaluationSeries>();
  /** Undefined when there were too many. */
  #namespaces: Set<string> | undefined;
  /** Evaluations that have less labels than others, because there are too many series. */
  #limited = 0;
  #forgotten = 0;

  constructor(options: EvaluationCountsOptions) {
    this.#options = options;
    this.#maxNamespaces = options.labelledNamespaces ?? DEFAULT_LABELLED_NAMESPACES;
    this.#namespaces = this.#maxNamespaces === 0 ? undefined : new Set();
    this.#now = options.now ?? (() => performance.now());
  }

  get limited(): number {
    return this.#limited;
  }

  get forgotten(): number {
    return this.#forgotten;
  }

  get hasNamespaces(): boolean {
    return this.#namespaces !== undefined;
  }

  count(observation: Observation, evaluationMs: number): void {
    const known = this.#seriesOf.get(observation);
    const series = known?.isGone === false ? known : this.#find(observation);
    series.count += 1;
    series.countedAt = this.#now();
    series.latency.observe(evaluationMs);
  }

  /** Removes the series of a policy. */
  removePolicy(policy: string): void {
    for (const series of this.#ofPolicy.get(policy) ?? []) {
      this.#remove(series);
    }
  }

  /** Forgets what has not been counted in for long. */
  *samples(): Generator<Sample> {
    const oldest = this.#now() - FORGOTTEN_AFTER_MS;
    const namespaces = new Set<string>();
    for (const series of this.#series.values()) {
      if (series.countedAt < oldest) {
        this.#remove(series);
        this.#forgotten += 1;
      } else {
        const { resource_namespace: namespace } = series.labels;
        if (namespace !== undefined) {
          namespaces.add(namespace);
        }
        yield { labels: series.labels, value: series.count };
      }
    }
    this.#namespaces &&= namespaces;
  }

  #find(observation: Observation): EvaluationSeries {
    this.#noteNamespace(observation.namespace);
    const detailed = this.#under(this.#labelsOf(observation), MAX_DETAILED_SERIES);
    if (detailed !== undefined) {
      this.#seriesOf.set(observation, detailed);
      return detailed;
    }
    this.#limited += 1;
    const labels = { ...policyLabels(observation), resource_kind: OTHER_NAME };
    return this.#under(labels, MAX_EVALUATION_SERIES) ?? this.#create({ ...labels, policy_name: OTHER_NAME });
  }

  /** The series of these labels; a new one if there are fewer than `max`. */
  #under(labels: Labels, max: number): EvaluationSeries | undefined {
    return this.#series.get(JSON.stringify(labels)) ?? (this.#series.size < max ? this.#create(labels) : undefined);
  }

  #create(labels: Labels): EvaluationSeries {
    const key = JSON.stringify(labels);
    const { policy_name = '', policy_mode = '' } = labels;
    const latency = this.#options.latencyOf({ policy_name, policy_mode });
    const fresh = { key, labels, count: 0, countedAt: this.#now(), isGone: false, latency };
    const series = this.#series.get(key) ?? fresh;
    this.#series.set(key, series);
    this.#ofPolicy.set(policy_name, (this.#ofPolicy.get(policy_name) ?? new Set()).add(series));
    return series;
  }

  #remove(series: EvaluationSeries): void {
    const { key, labels } = series;
    const policy = labels['policy_name'] ?? '';
    series.isGone = true;
    this.#series.delete(key);
    const ofPolicy = this.#ofPolicy.get(policy);
    ofPolicy?.delete(series);
    if (ofPolicy?.size === 0) {
      this.#ofPolicy.delete(policy);
    }
  }

  /** With too many namespaces, adds their series up. */
  #noteNamespace(namespace: string | undefined): void {
    if (namespace === undefined || this.#namespaces === undefined) {
      return;
    }
    this.#namespaces.add(namespace);
    if (this.#namespaces.size <= this.#maxNamespaces) {
      return;
    }
    this.#namespaces = undefined;
    const all = [...this.#series.values()];
    for (const one of all) {
      this.#remove(one);
      const { labels, count, countedAt } = one;
      const { resource_namespace: _, ...rest } = labels;
      const series = this.#create(rest);
      series.count += count;
      series.countedAt = Math.max(series.countedAt, countedAt);
    }
  }

  #labelsOf(observation: Observation): Labels {
    const { kind, namespace, operation, errorCode } = observation;
    const ofResource =
      kind === undefined
        ? {}
        : {
            resource_kind: kind,
            ...(namespace === undefined || this.#namespaces === undefined ? {} : { resource_namespace: namespace }),
            ...(operation === undefined ? {} : { resource_request_operation: operation }),
          };
    return {
      ...policyLabels(observation),
      ...ofResource,
      ...(errorCode === undefined ? {} : { error_code: errorCodeLabel(errorCode) }),
    };
  }
}

function policyLabels({ policy, mode, route, accepted, mutated }: Observation): Labels {
  return {
    policy_name: policy,
    policy_mode: mode,
    accepted: String(accepted),
    mutated: String(mutated),
    request_origin: route === 'audit' ? 'audit' : 'validate',
  };
}

/** A policy may return any number as its code; only HTTP status codes get their own label. */
function errorCodeLabel(code: number): string {
  return code >= 100 && code < 600 ? String(code) : OTHER_NAME;
}
