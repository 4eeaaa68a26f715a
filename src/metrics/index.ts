export { LabelLimit } from './label-limit.ts';
export { pageText, type Sample, type SampledMetric } from './metrics-page.ts';
export { MetricsEndpoint } from './metrics-endpoint.ts';
