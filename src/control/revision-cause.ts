// Why a revision of a policy was made, as `rollout history` and the status of the policy show it.
import { isDeepStrictEqual } from 'node:util';
import { movedModules } from './moved-modules.ts';
import type { PinnedModule } from './replica-protocol.ts';

/** Hexadecimal digits of a short digest: 48 bits, enough to tell the modules of one policy apart. */
const SHORT_DIGEST_LENGTH = 12;

/** What a revision consists of. */
export interface RevisionContent {
  /** The generation of the policy. */
  readonly generation: number;
  readonly rollbackOf: number | undefined;
  readonly refresh: string | undefined;
  readonly snapshot: unknown;
  readonly modules: readonly PinnedModule[];
}

/**
 * The cause of a revision: a rollback, a refresh, or the changed fields of the spec.
 * @param before the revision before, if it is kept
 */
export function revisionCause(revision: RevisionContent, before: RevisionContent | undefined): string {
  const { generation, rollbackOf, snapshot } = revision;
  return rollbackOf === undefined
    ? (refreshText(revision, before) ?? [`generation ${generation}`, ...changes(snapshot, before)].join(': '))
    : `rollback to ${rollbackOf}`;
}

/** Of a revision that was made by a refresh: the modules that it replaces. */
function refreshText(
  { refresh, snapshot, modules }: RevisionContent,
  before: RevisionContent | undefined,
): string | undefined {
  const isRefresh =
    before !== undefined &&
    refresh !== undefined &&
    refresh !== before.refresh &&
    isDeepStrictEqual(snapshot, before.snapshot);
  if (!isRefresh) {
    return undefined;
  }
  const texts = movedModules(before.modules, modules).flatMap(({ from, to }) =>
    from === undefined ? [] : [`${shortDigest(to)} instead of ${shortDigest(from)}`],
  );
  return ['refresh', ...(texts.length === 0 ? [] : [texts.join(', ')])].join(': ');
}

function changes(snapshot: unknown, before: RevisionContent | undefined): string[] {
  if (before === undefined) {
    return [];
  }
  const [now, then] = [fields(snapshot), fields(before.snapshot)];
  const names = new Set([...now.keys(), ...then.keys()]);
  const changed = [...names].sort().filter((name) => !isDeepStrictEqual(now.get(name), then.get(name)));
  return changed.length === 0 ? [] : [changed.join(', ')];
}

function fields(snapshot: unknown): ReadonlyMap<string, unknown> {
  return new Map(typeof snapshot === 'object' && snapshot !== null ? Object.entries(snapshot) : []);
}

/** A digest with the first digits of its hash. */
export function shortDigest(digest: string): string {
  const [algorithm = '', hex = ''] = digest.split(':');
  return algorithm === 'sha256' ? `${algorithm}:${hex.slice(0, SHORT_DIGEST_LENGTH)}` : digest;
}
