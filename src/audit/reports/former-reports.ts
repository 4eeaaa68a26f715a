import { type Cluster, isForbidden, isNotFound, listPages, unlessGone } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import { keyOf, type OpenReport, REPORT_FORMATS, type ReportApi, type ResourceType } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { REPORT_SELECTOR } from '../access-rules/report-labels.ts';

/** Some 4 MB of reports. */
const REPORTS_PER_PAGE = 25;

/** Deletes reports that an auditor wrote before it was told to write those of another API. Never rejects. */
export async function removeFormerReports(
  cluster: Pick<Cluster, 'list' | 'delete'>,
  format: ReportApi,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const former = Object.values(REPORT_FORMATS).filter(({ reports }) => reports.group !== format.reports.group);
  for (const type of former.flatMap(({ reports, clusterReports }) => [reports, clusterReports])) {
    try {
      await removeAll(cluster, type, signal);
    } catch (error) {
      if (!isNotFound(error) && !isForbidden(error) && !signal.aborted) {
        log.warn({ kind: type.kind, error: errorText(error) }, 'former reports are left over');
      }
    }
  }
}

async function removeAll(
  cluster: Pick<Cluster, 'list' | 'delete'>,
  type: ResourceType<OpenReport>,
  signal: AbortSignal,
): Promise<void> {
  const options = { labelSelector: REPORT_SELECTOR, limit: REPORTS_PER_PAGE, signal };
  for await (const { items } of listPages(cluster, type, options)) {
    for (const report of items) {
      const { uid = '' } = report.metadata;
      await unlessGone(cluster.delete(type, keyOf(report), { preconditions: { uid }, signal }));
    }
  }
}
