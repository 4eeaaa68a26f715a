import type { Cluster } from '../cluster/index.ts';
import { ExceptionTable } from '../engine/index.ts';
import type { EvaluationHost } from '../evaluation/index.ts';
import type { ExceptionTerms } from '../resources/index.ts';
import type { AuditPolicy } from './audit-policy.ts';
import { auditKind, type AuditPart, type AuditRun, type ObjectPage } from './audit-kind.ts';
import { type Coverage, NO_COUNTS } from './coverage.ts';
import { SharedVerdicts } from './shared-verdicts.ts';
import { type AuditPlan, type AuditScope, type KindListing, planAudit } from './plan-audit.ts';

/** Objects of a page: half of what controllers list, because a second page is read while the first is judged. */
const PAGE_SIZE = 250;

/** An audit of a cluster. */
export interface ClusterAudit extends Omit<AuditRun, 'verdicts'> {
  readonly cluster: Pick<Cluster, 'list' | 'discovery'>;
  readonly host: Pick<EvaluationHost, 'serve' | 'evaluate'>;
  readonly policies: readonly AuditPolicy[];
  /** Sees the verdicts of a kind as they come. Default: nobody does. */
  readonly withVerdicts?: (verdicts: SharedVerdicts, listing: KindListing) => AuditRun['verdicts'];
  readonly scope?: Omit<AuditScope, 'hasCluster' | 'knowsAllKinds' | 'unavailable'>;
  /** Those that the host evaluates with. Default: none. */
  readonly exceptions?: readonly ExceptionTerms[];
}

/**
 * Judges the existing objects of a cluster, kind by kind. What is known of a kind comes when all of it was judged.
 * @throws ApiError, ClusterError when the kinds of the cluster cannot be read
 */
export async function* auditCluster(audit: ClusterAudit): AsyncGenerator<AuditPart> {
  const { cluster, policies, scope = {}, signal } = audit;
  const options = signal === undefined ? {} : { signal };
  const served = await cluster.discovery.resources(options);
  const unavailable = (await cluster.discovery.unavailable?.(options)) ?? [];
  yield* auditPlan(
    planAudit(policies, served, { ...scope, unavailable }),
    (listing) => pagesOf(cluster, listing, signal),
    audit,
  );
}

/** Judges what a plan lists. */
export async function* auditPlan(
  plan: AuditPlan,
  pagesOfKind: (listing: KindListing) => AsyncIterable<ObjectPage>,
  audit: Omit<ClusterAudit, 'cluster' | 'policies' | 'scope'>,
): AsyncGenerator<AuditPart> {
  yield { coverage: plan.coverage, results: [] };
  const outcomes = await audit.host.serve(plan.hosted);
  const table = new ExceptionTable();
  audit.exceptions?.forEach((terms) => table.set(terms));
  for (const listing of plan.listings) {
    const notLoaded: Coverage[] = [];
    const policies = listing.policies.filter(({ id, name }) => {
      const outcome = outcomes.get(id);
      if (outcome?.ok === false) {
        const { type: kind } = listing;
        const message = `${outcome.reason}: ${outcome.message}`;
        notLoaded.push({ policy: name, kind, state: 'Failed', reason: 'NotLoaded', message, counts: NO_COUNTS });
      }
      return outcome?.ok === true;
    });
    const verdicts = new SharedVerdicts(
      audit.host,
      plan.hosted.filter(({ id }) => policies.some((one) => one.id === id)),
      table,
    );
    const part =
      policies.length === 0
        ? { coverage: [], results: [] }
        : await auditKind({ ...listing, policies }, () => pagesOfKind(listing), {
            ...audit,
            verdicts: audit.withVerdicts?.(verdicts, listing) ?? verdicts,
          });
    yield { ...part, coverage: [...notLoaded, ...part.coverage] };
  }
}

/** The objects of a kind, page by page. */
export async function* pagesOf(
  cluster: Pick<Cluster, 'list'>,
  { type, namespace }: Pick<KindListing, 'type' | 'namespace'>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ObjectPage> {
  const options = {
    limit: PAGE_SIZE,
    ...(namespace === undefined ? {} : { namespace }),
    ...(signal === undefined ? {} : { signal }),
  };
  let next: string | undefined;
  do {
    const { items, metadata } = await cluster.list(type, next === undefined ? options : { ...options, continue: next });
    const { remainingItemCount: remaining } = metadata;
    yield { items, ...(remaining === undefined ? {} : { remaining }) };
    next = metadata.continue;
  } while (next !== undefined && next !== '');
}
