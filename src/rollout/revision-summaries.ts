// The revisions of a policy in its status, for authors who may read the policy, but not PolicyRevisions.
import { isDeepStrictEqual } from 'node:util';
import { revisionCause } from '../control/index.ts';
import { MAX_LISTED_REVISIONS, type RevisionSummary, timeText } from '../resources/index.ts';
import { exactJson, shortened } from '../values/index.ts';
import { hasFailed } from './revision-choice.ts';
import type { RevisionFacts, RolloutView } from './rollout-view.ts';

/**
 * Size of the specs in a status. Usual specs have 1 to 2 KiB. With this limit and that of what serves, a status stays below 32 KiB,
 * a fiftieth of what etcd stores as one object. UTF-16 units.
 */
const MAX_SPECS_LENGTH = 8 * 1024;
/** Revisions whose spec is in the status: the one that serves, and two to compare with. */
const MAX_SPECS = 3;
/** Digests of one revision: a revision of a group may have a hundred. */
const MAX_DIGESTS = 5;
/** Characters of a cause, which names the changed fields of a spec. */
const MAX_CAUSE_LENGTH = 256;

/** `status.revisions`: the newest revisions, newest first. */
export function revisionSummaries(
  { revisions, spec }: Pick<RolloutView, 'revisions' | 'spec'>,
  serving: RevisionFacts | undefined,
): readonly RevisionSummary[] {
  const newest = revisions.slice(-MAX_LISTED_REVISIONS).toReversed();
  const isDeclared = ({ snapshot }: RevisionFacts): boolean => isDeepStrictEqual(snapshot, spec);
  const specs = specsOf(
    newest.filter((one) => !isDeclared(one)),
    serving,
  );
  return newest.map((revision) => {
    const { number, state, reason, stateSince } = revision;
    const digests = [...new Set(revision.modules.map(({ digest }) => digest))];
    const text = specs.get(number);
    return {
      revision: number,
      state,
      ...(hasFailed(revision) && reason !== '' ? { reason } : {}),
      since: timeText(stateSince),
      cause: shortened(revisionCause(revision, revisions[revisions.indexOf(revision) - 1]), MAX_CAUSE_LENGTH),
      digests: digests.slice(0, MAX_DIGESTS),
      ...(digests.length > MAX_DIGESTS ? { omittedDigests: digests.length - MAX_DIGESTS } : {}),
      ...(isDeclared(revision) ? { declared: true } : {}),
      ...(text === undefined ? {} : { spec: text }),
    };
  });
}

/** The specs that a status contains, by revision: first that of the serving one. */
function specsOf(revisions: readonly RevisionFacts[], serving: RevisionFacts | undefined): ReadonlyMap<number, string> {
  const candidates = revisions
    .toSorted((one, other) => Number(other === serving) - Number(one === serving))
    .slice(0, MAX_SPECS)
    .map(({ number, snapshot }) => ({ number, text: exactJson(snapshot) }));
  const fit = fitting(candidates, MAX_SPECS_LENGTH, (one) => [one]);
  return new Map(fit.map(({ number, text }) => [number, text]));
}

/** Entries that fit together into a length; of each the first of its forms that fits. */
export function fitting<T>(entries: readonly T[], length: number, formsOf: (entry: T) => readonly T[]): T[] {
  let left = length;
  return entries.flatMap((entry) => {
    const form = formsOf(entry).find((one) => JSON.stringify(one).length <= left);
    left -= form === undefined ? 0 : JSON.stringify(form).length;
    return form === undefined ? [] : [form];
  });
}
