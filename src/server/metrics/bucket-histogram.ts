// A histogram for the request path. prom-client hashes labels with every observation, which costs several microseconds;
// here the series of labels is looked up once and kept by the caller.
import type { Sample, SampledMetric } from '../../metrics/index.ts';

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

/** A histogram by labels. */
export class BucketHistogram implements SampledMetric {
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

  /** Removes the series with such labels. */
  remove(matches: (labels: Labels) => boolean): void {
    for (const [key, { labels }] of this.#series) {
      if (matches(labels)) {
        this.#series.delete(key);
      }
    }
  }

  /** The samples, cumulated as in Prometheus. */
  *samples(): Generator<Sample> {
    for (const { labels, counts, sum } of this.#series.values()) {
      let count = 0;
      for (const [index, le] of [...this.#bounds.map(String), '+Inf'].entries()) {
        count += counts[index] ?? 0;
        yield { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count };
      }
      yield { metricName: `${this.name}_sum`, labels, value: sum };
      yield { metricName: `${this.name}_count`, labels, value: count };
    }
  }
}
