// The revision that a rollback without a number restores.
import { isDeepStrictEqual } from 'node:util';
import { movedModules } from './moved-modules.ts';
import { pinnedSpec } from './pinned-spec.ts';
import type { PinnedModule } from './replica-protocol.ts';

/** A revision, as far as a rollback reads it. */
export interface RollbackCandidate {
  /** 0 if it never served. */
  readonly order: number;
  readonly snapshot: unknown;
  readonly modules: readonly PinnedModule[];
}

/**
 * The newest revision that served and differs from what the policy declares, in its spec or, after a refresh, in its modules.
 *
 * @param spec of the policy
 * @param revisions of the policy, in the order of their numbers
 */
export function previousRevision<Revision extends RollbackCandidate>(
  spec: unknown,
  revisions: readonly Revision[],
): Revision | undefined {
  const newest = revisions.at(-1);
  const declared = newest !== undefined && isDeepStrictEqual(newest.snapshot, spec) ? newest : undefined;
  const isDeclared = ({ snapshot, modules }: Revision): boolean =>
    isDeepStrictEqual(pinnedSpec(snapshot, modules), spec) ||
    (isDeepStrictEqual(snapshot, spec) &&
      (declared === undefined || movedModules(declared.modules, modules).length === 0));
  return revisions.findLast((revision) => revision.order > 0 && !isDeclared(revision));
}

/**
 * Why a rollback to the previous revision after a rollback goes forward again, and how to go further back. Undefined unless the
 * newest revision is a rollback itself.
 *
 * @param revisions of the policy before this rollback, in the order of their numbers
 * @param by what names a revision, such as a flag
 */
export function secondRollbackNote(
  revisions: readonly { readonly revision: number; readonly rollbackOf?: number | undefined }[],
  by: string,
): string | undefined {
  const newest = revisions.at(-1);
  return newest?.rollbackOf === undefined
    ? undefined
    : `revision ${newest.revision} was a rollback to ${newest.rollbackOf}, so this undid the rollback; to go further back, name a revision with ${by} (kept: ${revisions.map(({ revision }) => revision).join(', ')})`;
}
