import { age, nameOf } from './table-cells.ts';
import type { Cells } from './table-cells.ts';

interface MetricTarget {
  readonly averageUtilization?: number;
  readonly averageValue?: string;
  readonly value?: string;
}

interface MetricSource {
  readonly name?: string;
  readonly target?: MetricTarget;
  readonly current?: MetricTarget;
}

/** A metric in `spec` or `status`. The field that its type names has the source. */
interface Metric {
  readonly type?: string;
  readonly external?: MetricSource;
  readonly pods?: MetricSource;
  readonly object?: MetricSource;
  readonly resource?: MetricSource;
  readonly containerResource?: MetricSource;
}

interface Autoscaler {
  readonly spec?: {
    readonly scaleTargetRef?: { readonly kind?: string; readonly name?: string };
    readonly minReplicas?: number;
    readonly maxReplicas?: number;
    readonly metrics?: readonly Metric[];
  };
  readonly status?: { readonly currentReplicas?: number; readonly currentMetrics?: readonly Metric[] | null };
}

export const horizontalPodAutoscalerCells: Cells = (object, now) => {
  const { spec, status } = object as Autoscaler;
  const { kind, name } = spec?.scaleTargetRef ?? {};
  return [
    nameOf(object),
    `${kind}/${name}`,
    metricsText(spec?.metrics ?? [], status?.currentMetrics ?? []),
    String(spec?.minReplicas ?? '<unset>'),
    spec?.maxReplicas ?? 0,
    status?.currentReplicas ?? 0,
    age(object, now),
  ];
};

/** The first two metrics, each as current value and target. */
function metricsText(metrics: readonly Metric[], current: readonly Metric[]): string {
  if (metrics.length === 0) {
    return '<none>';
  }
  const text = metrics
    .slice(0, 2)
    .map((metric, index) => metricText(metric, current[index]))
    .join(', ');
  return metrics.length > 2 ? `${text} + ${metrics.length - 2} more...` : text;
}

function metricText(metric: Metric, current: Metric | undefined): string {
  switch (metric.type) {
    case 'External':
      return valueText(metric.external?.target, current?.external);
    case 'Object':
      return valueText(metric.object?.target, current?.object);
    case 'Pods':
      return `${averageText(current?.pods)}/${metric.pods?.target?.averageValue ?? '<nil>'}`;
    case 'Resource':
      return resourceText(metric.resource, current?.resource);
    case 'ContainerResource':
      return resourceText(metric.containerResource, current?.containerResource);
    default:
      return '<unknown type>';
  }
}

function valueText(target: MetricTarget | undefined, current: MetricSource | undefined): string {
  if (target?.averageValue !== undefined) {
    return `${current?.current?.averageValue ?? '<unknown>'}/${target.averageValue} (avg)`;
  }
  const value = current === undefined ? '<unknown>' : (current.current?.value ?? '<nil>');
  return `${value}/${target?.value ?? '<nil>'}`;
}

function averageText(current: MetricSource | undefined): string {
  return current === undefined ? '<unknown>' : (current.current?.averageValue ?? '<nil>');
}

function resourceText(metric: MetricSource | undefined, current: MetricSource | undefined): string {
  const name = metric?.name ?? '';
  if (metric?.target?.averageValue !== undefined) {
    return `${name}: ${averageText(current)}/${metric.target.averageValue}`;
  }
  const percent = (value: number | undefined, none: string): string => (value === undefined ? none : `${value}%`);
  const used = percent(current?.current?.averageUtilization, '<unknown>');
  return `${name}: ${used}/${percent(metric?.target?.averageUtilization, '<auto>')}`;
}
