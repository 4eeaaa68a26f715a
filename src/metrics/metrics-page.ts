// The page of registries in the Prometheus text format, in slices: other work of the thread goes on between them.
// https://prometheus.io/docs/instrumenting/exposition_formats/
import { setImmediate as turn } from 'node:timers/promises';
import type { Metric, Registry } from 'prom-client';

/** Samples of one metric on a page: half again as many as the metric with the most has at its own limit. The rest is left out. */
export const MAX_SERIES_OF_METRIC = 50_000;
/** Samples that are written in one turn of the event loop: some 0.2 ms. A review takes several turns. */
const SLICE_SAMPLES = 100;

/** A value of a metric. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string | number | undefined>> | undefined;
  readonly value: number;
  /** Such as the name of the metric with `_bucket`. Default: the name of the metric. */
  readonly metricName?: string;
}

/** A metric whose samples are made while the page is written, for metrics with many. A Metric of prom-client otherwise. */
export interface SampledMetric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  samples(): Iterable<Sample>;
}

/** The metrics of a process, or of one of several clusters in it. */
export interface MetricsOf {
  readonly registry: Registry;
  /** The value of the label `cluster`. Default: no label. */
  readonly name?: string;
}

/** The page, slice by slice. At its end it says how many samples it left out of each metric. */
export async function* metricsPage(registries: Iterable<MetricsOf>): AsyncGenerator<string> {
  const omitted: Sample[] = [];
  for (const [name, metrics] of metricsByName(registries)) {
    let count = 0;
    for (const [index, { metric, labels }] of metrics.entries()) {
      const { help, type, samples } = await readMetric(metric);
      let text = index === 0 ? head(name, help, type) : '';
      for (const sample of samples) {
        count += 1;
        if (count > MAX_SERIES_OF_METRIC) {
          continue;
        }
        text += sampleText(name, sample, labels);
        if (count % SLICE_SAMPLES === 0) {
          yield text;
          text = '';
          await turn();
        }
      }
      yield text;
    }
    yield '\n';
    if (count > MAX_SERIES_OF_METRIC) {
      omitted.push({ labels: { metric: name }, value: count - MAX_SERIES_OF_METRIC });
    }
    await turn();
  }
  const name = 'portcullis_metrics_samples_omitted';
  const help = 'Samples that this page does not have, by metric, because there are too many';
  yield head(name, help, 'gauge') + omitted.map((sample) => sampleText(name, sample)).join('');
}

/** The whole page. */
export async function pageText(registries: Iterable<MetricsOf>): Promise<string> {
  let text = '';
  for await (const slice of metricsPage(registries)) {
    text += slice;
  }
  return text;
}

interface LabelledMetric {
  readonly metric: Metric | SampledMetric;
  readonly labels: Sample['labels'];
}

/** A metric has one head on a page, however many registries have it. */
function metricsByName(registries: Iterable<MetricsOf>): ReadonlyMap<string, readonly LabelledMetric[]> {
  const metrics = new Map<string, LabelledMetric[]>();
  for (const { registry, name: cluster } of registries) {
    for (const metric of registry.getMetricsAsArray() as unknown as (
      | (Metric & { readonly name: string })
      | SampledMetric
    )[]) {
      const same = metrics.get(metric.name) ?? [];
      same.push({ metric, labels: cluster === undefined ? undefined : { cluster } });
      metrics.set(metric.name, same);
    }
  }
  return metrics;
}

interface ReadMetric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: Iterable<Sample>;
}

async function readMetric(metric: Metric | SampledMetric): Promise<ReadMetric> {
  if ('samples' in metric) {
    const { name, help, type } = metric;
    return { name, help, type, samples: metric.samples() };
  }
  const { name, help, type, values } = (await metric.get()) as unknown as Omit<ReadMetric, 'samples'> & {
    readonly values: readonly Sample[];
  };
  return { name, help, type, samples: values };
}

function head(name: string, help: string, type: string): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', String.raw`\n`)}\n# TYPE ${name} ${type}\n`;
}

function sampleText(name: string, { metricName = name, labels, value }: Sample, further?: Sample['labels']): string {
  let text = '';
  for (const [label, labelValue] of Object.entries(
    further === undefined ? (labels ?? {}) : { ...further, ...labels },
  )) {
    if (labelValue !== undefined) {
      text += `${text === '' ? '' : ','}${label}="${escaped(String(labelValue))}"`;
    }
  }
  return `${metricName}${text === '' ? '' : `{${text}}`} ${numberText(value)}\n`;
}

const SPECIAL = /["\\\n]/g;

function escaped(text: string): string {
  return text.replaceAll(SPECIAL, (character) => (character === '\n' ? String.raw`\n` : `\\${character}`));
}

function numberText(value: number): string {
  return Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}
