// What the status of a revision says of its preview (pure).
import { MAX_PREVIEW_MESSAGE, type RevisionPreview, timeText } from '../../resources/index.ts';
import { inertTexts, shortened } from '../../values/index.ts';
import { type CoverageReason, isIncomplete } from '../coverage.ts';
import { isUnfinished, type Preview, SUBJECTS } from '../preview/index.ts';

type Counts = NonNullable<RevisionPreview['counts']>;

/** When it was computed, in milliseconds since 1970, and with which revision the new one was compared. */
export interface PreviewOrigin {
  readonly comparedWith: number | undefined;
  readonly now: number;
}

/** @param origin of the preview */
export function previewStatus(preview: Preview, origin: PreviewOrigin): RevisionPreview {
  const gap = preview.coverage.find(
    (one) => isIncomplete(one) || (one.policy === 'new' && one.state === 'NotAuditable'),
  );
  const why = `${gap?.kind === undefined ? '' : `${gap.kind.resource}: `}${gap?.message ?? 'not all objects are known'}`;
  if (preview.after === 'unknown') {
    return unknownPreview(gap?.reason ?? 'NotLoaded', why, origin);
  }
  const counts = countsOf(preview);
  const rejected = SUBJECTS.reduce((sum, subject) => sum + (preview.counts[subject].newlyRejected ?? 0), 0);
  const isComplete = !isUnfinished(preview);
  const { comparedWith } = origin;
  const base = comparedWith === undefined ? 'nothing served before' : `compared with revision ${comparedWith}`;
  const remarks = [
    ...(preview.before === 'unknown' ? ['which cannot be judged by: all that is rejected counts as new'] : []),
    ...(isComplete ? [] : [why]),
  ];
  return status(
    {
      summary: isComplete ? String(rejected) : rejected === 0 ? 'Unknown' : `${rejected}+`,
      state: isComplete ? 'Complete' : 'Incomplete',
      reason: isComplete ? 'Compared' : (gap?.reason ?? 'NotJudged'),
      message: [`${textOf(counts)} (${base})`, ...remarks].join('; '),
      counts,
    },
    origin,
  );
}

/** A preview of which nothing is known. */
export function unknownPreview(
  reason: CoverageReason | 'TimedOut' | 'Failed',
  message: string,
  origin: PreviewOrigin,
): RevisionPreview {
  return status({ summary: 'Unknown', state: 'Unknown', reason, message }, origin);
}

function status(preview: RevisionPreview, { comparedWith, now }: PreviewOrigin): RevisionPreview {
  return {
    ...inertTexts({ ...preview, message: shortened(preview.message, MAX_PREVIEW_MESSAGE) }),
    ...(comparedWith === undefined ? {} : { comparedWith }),
    computedAt: timeText(now),
  };
}

function countsOf({ counts, groups }: Preview): Counts {
  const { objects, nextPods, rollbacks, finalizers } = counts;
  return {
    newlyRejected: objects.newlyRejected ?? 0,
    newlyReported: objects.newlyReported ?? 0,
    mutationChanged: (objects.newlyMutated ?? 0) + (objects.mutationChanged ?? 0) + (objects.noLongerMutated ?? 0),
    messageChanged: objects.messageChanged ?? 0,
    notEvaluable: objects.notEvaluable ?? 0,
    newlyAdmitted: objects.newlyAdmitted ?? 0,
    nextPods: nextPods.newlyRejected ?? 0,
    rollbacks: rollbacks.newlyRejected ?? 0,
    deletions: finalizers.newlyRejected ?? 0,
    guarded: groups.reduce((sum, { guard, count }) => sum + (guard === undefined ? 0 : count), 0),
  };
}

const TEXTS: Readonly<Record<keyof Counts, string>> = {
  guarded: 'that the cluster needs',
  newlyRejected: 'newly rejected',
  nextPods: 'whose next pods are rejected',
  rollbacks: 'rollbacks rejected',
  deletions: 'deletions blocked',
  newlyReported: 'newly reported',
  mutationChanged: 'mutated otherwise',
  messageChanged: 'rejected for another reason',
  notEvaluable: 'not evaluable',
  newlyAdmitted: 'newly admitted',
};

/** As in `2 newly rejected, 1 newly admitted`. */
function textOf(counts: Counts): string {
  const parts = (Object.keys(TEXTS) as (keyof Counts)[]).filter((name) => counts[name] > 0);
  return parts.length === 0 ? 'nothing changes' : parts.map((name) => `${counts[name]} ${TEXTS[name]}`).join(', ');
}
