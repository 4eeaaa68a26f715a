import type { SideVerdict } from './side-verdict.ts';

/** What a new version of a policy changes for an object. `newlyReported`: in monitor mode, where nothing is rejected. */
export type VerdictChange =
  | 'newlyRejected'
  | 'newlyAdmitted'
  | 'newlyMutated'
  | 'mutationChanged'
  | 'noLongerMutated'
  | 'messageChanged'
  | 'newlyReported'
  | 'notEvaluable'
  | 'stillRejected'
  | 'unchanged';

/** Compares the verdicts on an object. An object that the new version rejects is newly rejected unless the old one is known to. */
export function changeOf(before: SideVerdict, after: SideVerdict): VerdictChange {
  if (after.state === 'reject') {
    return before.state !== 'reject'
      ? 'newlyRejected'
      : before.message === after.message
        ? 'stillRejected'
        : 'messageChanged';
  }
  if (after.state === 'error' || before.state === 'error') {
    return 'notEvaluable';
  }
  if (before.state === 'reject') {
    return 'newlyAdmitted';
  }
  if (after.state === 'report') {
    return before.state === 'report' ? 'unchanged' : 'newlyReported';
  }
  if (after.state === 'mutate') {
    return before.state !== 'mutate' ? 'newlyMutated' : before.patch === after.patch ? 'unchanged' : 'mutationChanged';
  }
  return before.state === 'mutate' ? 'noLongerMutated' : 'unchanged';
}
