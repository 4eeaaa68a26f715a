// The result of a preview with what it is about, and what it means for a pipeline.
import type { ChangeGroup, Preview } from '../../../audit/preview/index.ts';
import { isUnfinished, SUBJECTS } from '../../../audit/preview/index.ts';
import { EXIT } from '../../errors.ts';

/** Which changes make the command fail. */
export const PREVIEW_FAIL_ON = ['newly-rejected', 'guarded', 'change', 'never'] as const;
export type PreviewFailOn = (typeof PREVIEW_FAIL_ON)[number];

export interface PreviewReport extends Preview {
  /** `cap/pinned-images` */
  readonly policy: string;
  /** What is compared: `revision 3`, `new.yaml`. */
  readonly old: string;
  readonly new: string;
}

/** Groups of rejected objects that the cluster needs. */
export function guardedGroups({ groups }: Preview): readonly ChangeGroup[] {
  return groups.filter(({ guard }) => guard !== undefined);
}

/** What is not known weighs more than what was found: it may hide more. */
export function exitCodeOfPreview(report: Preview, failOn: PreviewFailOn): number {
  if (isUnfinished(report)) {
    return EXIT.incomplete;
  }
  const isFailure = {
    'newly-rejected': SUBJECTS.some((subject) => (report.counts[subject].newlyRejected ?? 0) > 0),
    guarded: guardedGroups(report).length > 0,
    change: report.groups.length > 0,
    never: false,
  }[failOn];
  return isFailure ? EXIT.failed : EXIT.ok;
}
