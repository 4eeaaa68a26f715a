// Whether workloads can still be rolled back to the revisions that are stored of them.
import type { ApiResource } from '../../cluster/index.ts';
import { groupResourceOf, type KubernetesObject } from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';
import type { ObjectPage } from '../audit-kind.ts';
import { type Coverage, failedList, NO_COUNTS } from '../coverage.ts';
import type { KindListing } from '../plan-audit.ts';
import { changeOf } from './change.ts';
import { ChangeGroups } from './change-groups.ts';
import type { KeptWorkload, PreviewState } from './compared-verdicts.ts';
import { controllerOf } from './object-owners.ts';
import { REVISION_KINDS, revisionNumberOf, rolledBack } from './stored-revisions.ts';

/** Revisions that are judged at once. */
const MAX_UNDER_WAY = 16;

export interface RevisionComparison {
  readonly changes: ChangeGroups;
  /** Of kinds of revisions that could not be read. */
  readonly coverage: readonly Coverage[];
}

/** @param pagesOf lists a kind */
export async function compareRevisions(
  state: PreviewState,
  served: readonly ApiResource[],
  {
    pagesOf,
    namespace,
    signal,
  }: {
    readonly pagesOf: (listing: Pick<KindListing, 'type' | 'namespace'>) => AsyncIterable<ObjectPage>;
    readonly namespace?: string | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<RevisionComparison> {
  const changes = new ChangeGroups();
  const coverage: Coverage[] = [];
  const kinds = new Set([...state.workloads.values()].map(({ type }) => type.resource));
  const wanted = new Set(
    REVISION_KINDS.filter(({ workloads }) => kinds.has(workloads)).map(({ revisions }) => revisions),
  );
  for (const type of [...wanted].flatMap(
    (name) => served.find((one) => groupResourceOf(one) === `${name}.apps`) ?? [],
  )) {
    try {
      for await (const { items } of pagesOf(namespace === undefined ? { type } : { type, namespace })) {
        for (let start = 0; start < items.length; start += MAX_UNDER_WAY) {
          const some = items.slice(start, start + MAX_UNDER_WAY);
          await Promise.all(some.map((revision) => compareRevision(revision, state, changes)));
        }
        signal?.throwIfAborted();
      }
    } catch (error) {
      signal?.throwIfAborted();
      coverage.push({ policy: 'new', kind: type, ...failedList(error, type), counts: NO_COUNTS });
    }
  }
  return { changes, coverage };
}

async function compareRevision(
  revision: KubernetesObject,
  { sides, workloads }: PreviewState,
  changes: ChangeGroups,
): Promise<void> {
  const stored = asJson(revision);
  const kept = workloads.get(controllerOf(stored)?.uid ?? '');
  const object = kept && afterRollback(kept, stored);
  if (kept === undefined || object === undefined) {
    return;
  }
  const verdicts = await kept.verdicts.of(object, kept.type, kept.policies);
  const [before, after] = [sides.verdictOf('old', verdicts), sides.verdictOf('new', verdicts)];
  const number = revisionNumberOf(stored);
  changes.add({
    subject: 'rollbacks',
    change: changeOf(before, after),
    object,
    resource: kept.type,
    before,
    after,
    ...(number === undefined ? {} : { revision: number }),
  });
}

function afterRollback(
  { object, type }: KeptWorkload,
  revision: ReturnType<typeof asJson>,
): typeof revision | undefined {
  const kind = REVISION_KINDS.find(({ workloads }) => workloads === type.resource);
  return kind === undefined ? undefined : rolledBack(object, revision, kind);
}
