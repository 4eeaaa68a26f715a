/** States of a revision, in the order of a rollout; the last two end it early. */
export const REVISION_STATES = [
  'Candidate',
  'Validated',
  'Staged',
  'Serving',
  'Retired',
  'Failed',
  'Superseded',
] as const;

export type RevisionState = (typeof REVISION_STATES)[number];
