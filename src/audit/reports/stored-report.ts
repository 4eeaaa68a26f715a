// A report as the auditor remembers it: which results it has, but not what they say, so that memory holds all of a large cluster.
import {
  groupVersionOf,
  type KubernetesObject,
  type OpenReport,
  REPORT_FORMATS,
  type ReportApi,
  type ReportResult,
  type ReportSummary,
} from '../../resources/index.ts';
import { REPORT_SOURCE, resultDigest } from './report-result.ts';

export interface StoredResult {
  /** Empty: not written by the auditor. */
  readonly id: string;
  readonly digest: string;
  readonly policyUid: string;
  readonly group: string;
  readonly kind: string;
}

export interface StoredReport extends KubernetesObject {
  readonly results: readonly StoredResult[];
  /** Whether nobody else changed what stands beside the results. */
  readonly isIntact: boolean;
}

export function storedReport(report: OpenReport, format: ReportApi = REPORT_FORMATS.openreports): StoredReport {
  const { apiVersion, kind, metadata, results = [] } = report;
  const { name = '', namespace, uid = '', resourceVersion = '' } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid, resourceVersion },
    results: results.map(storedResult),
    isIntact: isIntact(report, format),
  };
}

/** The id that {@link reportResult} gave to a result. */
export function idOf({ properties }: ReportResult): string {
  return properties?.['resultID'] ?? '';
}

export function summaryOfResults(results: readonly ReportResult[]): ReportSummary {
  const counts = { pass: 0, fail: 0, warn: 0, error: 0, skip: 0 };
  for (const { result } of results) {
    if (result !== undefined) {
      counts[result] += 1;
    }
  }
  return counts;
}

function storedResult(result: ReportResult): StoredResult {
  const { apiVersion = '', kind = '' } = result.resources?.[0] ?? {};
  return {
    id: idOf(result),
    digest: resultDigest(result),
    policyUid: result.properties?.['policyUid'] ?? '',
    group: groupVersionOf(apiVersion).group,
    kind,
  };
}

/** The source of a report, where reports have one. */
export function reportSource({ without }: ReportApi): Pick<OpenReport, 'source'> {
  return without.includes('source') ? {} : { source: REPORT_SOURCE };
}

function isIntact(
  { source, summary, results = [], scope, scopeSelector, configuration }: OpenReport,
  format: ReportApi,
): boolean {
  const counts = Object.entries(summaryOfResults(results));
  return (
    source === reportSource(format).source &&
    scope === undefined &&
    scopeSelector === undefined &&
    configuration === undefined &&
    counts.every(([result, count]) => summary?.[result as keyof ReportSummary] === count)
  );
}
