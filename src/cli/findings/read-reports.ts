// The reports of a cluster that a user may read, and what the user may not.
import { REPORT_SELECTOR } from '../../audit/index.ts';
import { type Cluster, isNotFound, listAll, unlessForbidden } from '../../cluster/index.ts';
import {
  apiVersionOf,
  groupResourceOf,
  knownKind,
  type OpenReport,
  REPORT_FORMATS,
  type ReportApi,
  type ResourceType,
} from '../../resources/index.ts';
import { counted } from '../output.ts';

/** Some 4 MB of reports. */
const REPORTS_PER_PAGE = 25;
/** Namespaces that are read at once. */
const CONCURRENCY = 4;
const NAMESPACES = knownKind('v1', 'Namespace');

/** Which reports are read. */
export interface ReportScope {
  /** Absent: all namespaces, and the objects of none. Empty: the latter only. */
  readonly namespace?: string;
  /** Whether reports of others are read, too. */
  readonly allSources?: boolean;
  /** Read where the user may not list all namespaces, nor their names. */
  readonly ownNamespace: string;
}

/** Reports that were not read. */
export interface UnreadReports {
  readonly kind: string;
  readonly reason: 'NotServed' | 'Forbidden';
  readonly message: string;
}

interface ReadReports {
  readonly reports: readonly OpenReport[];
  readonly unread: readonly UnreadReports[];
}

/** @throws ApiError, ClusterError when the cluster fails */
export async function readReports(cluster: Cluster, scope: ReportScope): Promise<ReadReports> {
  const { namespace } = scope;
  const formats = await servedFormats(cluster);
  const parts = await Promise.all(
    formats.flatMap(({ reports, clusterReports }) => [
      ...(namespace === '' ? [] : [namespacedReports(cluster, reports, scope)]),
      ...(namespace === undefined || namespace === '' ? [reportsOfNone(cluster, clusterReports, scope)] : []),
    ]),
  );
  return { reports: parts.flatMap(({ reports }) => reports), unread: parts.flatMap(({ unread }) => unread) };
}

/** Those that the cluster has. Where it has none, that is said of OpenReports. */
async function servedFormats({ discovery }: Cluster): Promise<readonly ReportApi[]> {
  const { openreports, wgpolicyk8s } = REPORT_FORMATS;
  const found = await Promise.all(
    [openreports, wgpolicyk8s].map(async (format) => {
      const served = await discovery.find(apiVersionOf(format.reports), format.reports.kind);
      return served === undefined ? [] : [format];
    }),
  );
  const formats = found.flat();
  return formats.length > 0 ? formats : [openreports];
}

async function reportsOfNone(
  cluster: Cluster,
  type: ResourceType<OpenReport>,
  scope: ReportScope,
): Promise<ReadReports> {
  return await unlessNotServed(type, async () => {
    const reports = await unlessForbidden(list(cluster, type, scope));
    return reports === undefined
      ? forbidden(type, ': nothing is known of objects without a namespace')
      : { reports, unread: [] };
  });
}

async function namespacedReports(
  cluster: Cluster,
  type: ResourceType<OpenReport>,
  scope: ReportScope,
): Promise<ReadReports> {
  const { namespace } = scope;
  return await unlessNotServed(type, async () => {
    const all = await unlessForbidden(list(cluster, type, scope, namespace));
    if (all !== undefined) {
      return { reports: all, unread: [] };
    }
    return namespace === undefined
      ? await reportsOfNamespaces(cluster, type, scope)
      : forbidden(type, ` in the namespace ${namespace}`);
  });
}

/** One by one, for a user who may not list those of all. */
async function reportsOfNamespaces(
  cluster: Cluster,
  type: ResourceType<OpenReport>,
  scope: ReportScope,
): Promise<ReadReports> {
  const known = await unlessForbidden(listAll(cluster, NAMESPACES));
  const names = known?.items.map(({ metadata }) => metadata.name ?? '') ?? [scope.ownNamespace];
  const reports: OpenReport[] = [];
  let readable = 0;
  for (let start = 0; start < names.length; start += CONCURRENCY) {
    const some = names.slice(start, start + CONCURRENCY);
    const lists = await Promise.all(some.map((name) => unlessForbidden(list(cluster, type, scope, name))));
    readable += lists.filter((one) => one !== undefined).length;
    reports.push(...lists.flatMap((one) => one ?? []));
  }
  const which =
    known === undefined
      ? `of all namespaces: those of ${readable === 0 ? 'none' : scope.ownNamespace} were read`
      : `of all namespaces: those of ${readable} of ${counted(names.length, 'namespace')} were read`;
  const isAll = known !== undefined && readable === names.length;
  const { unread } = forbidden(type, ` ${which}`);
  return { reports, unread: isAll ? [] : unread };
}

async function list(
  cluster: Cluster,
  type: ResourceType<OpenReport>,
  { allSources }: ReportScope,
  namespace?: string,
): Promise<readonly OpenReport[]> {
  const { items } = await listAll(cluster, type, {
    limit: REPORTS_PER_PAGE,
    ...(namespace === undefined ? {} : { namespace }),
    ...(allSources === true ? {} : { labelSelector: REPORT_SELECTOR }),
  });
  return items;
}

async function unlessNotServed(type: ResourceType, read: () => Promise<ReadReports>): Promise<ReadReports> {
  try {
    return await read();
  } catch (error) {
    if (isNotFound(error)) {
      const message = `the cluster has no kind ${type.kind} of ${type.group}: no findings are stored in it`;
      return { reports: [], unread: [{ kind: type.kind, reason: 'NotServed', message }] };
    }
    throw error;
  }
}

/** @param what of them */
function forbidden(type: ResourceType, what: string): ReadReports {
  const message = `you may not list ${groupResourceOf(type)}${what}`;
  return { reports: [], unread: [{ kind: type.kind, reason: 'Forbidden', message }] };
}
