// A histogram for the request path. prom-client hashes labels with every observation, which costs several microseconds;
// here the series of labels is looked up once and kept by the caller.
import type { Metric } from 'prom-client';

type Labels = Readonly<Record<string, string>>;

/** One series: counts by bucket. */
export class HistogramSeries {
  readonly labels: Labels;
  /** Observations per bucket, not cumulated; the last bucket has no upper bound. */
  readonly counts: Float64Array;
  sum = 0;
  readonly #bounds: readonly number[];

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] ?? Infinity)) {
      bucket += 1;
    }
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sum += value;
  }
}

/** A histogram by labels, for a prom-client registry. */
export class BucketHistogram {
  readonly type = 'histogram';
  readonly name: string;
  readonly help: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, HistogramSeries>();

  /** `bounds` are the upper bounds of the buckets, in order. */
  constructor({ name, help, bounds }: { name: string; help: string; bounds: readonly number[] }) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
  }

  /** The series of these labels, created on first use. */
  series(labels: Labels): HistogramSeries {
    const key = JSON.stringify(labels);
    const series = this.#series.get(key) ?? new HistogramSeries(labels, this.#bounds);
    this.#series.set(key, series);
    return series;
  }

  /** Removes a series. */
  remove({ labels }: HistogramSeries): void {
    this.#series.delete(JSON.stringify(labels));
  }

  /** For prom-client's registries, which use only name, help, type and `get`. */
  asMetric(): Metric {
    return this as unknown as Metric;
  }

  /** The samples, cumulated as in Prometheus. */
  get(): Promise<object> {
    const values = [...this.#series.values()].flatMap((series) => this.#samples(series));
    return Promise.resolve({ name: this.name, help: this.help, type: this.type, values, aggregator: 'sum' });
  }

  #samples({ labels, counts, sum }: HistogramSeries): object[] {
    let count = 0;
    const buckets = [...this.#bounds.map(String), '+Inf'].map((le, index) => {
      count += counts[index] ?? 0;
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ];
  }
}
