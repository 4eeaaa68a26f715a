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

/** The reason of a retired revision whose failurePolicy answers, because the newest one failed. Replicas act on it. */
export const DEGRADED_REJECTED = 'DegradedRejected';
/** The reason of a retired revision whose policy is disarmed: no request matches it any more. Replicas act on it. */
export const DISARMED = 'Disarmed';

export type RevisionState = (typeof REVISION_STATES)[number];
