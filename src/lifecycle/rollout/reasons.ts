// Why a policy is in its phase: one word each, for programs. docs/lifecycle.md says the same for people.

/** Reasons that the lifecycle gives by itself; replicas and pre-validation add those of policy servers. */
export const REASONS = {
  /** The desired revision serves on every replica. */
  serving: 'Serving',
  /** A pin holds the revision that serves. */
  pinned: 'Pinned',
  /** A new revision is being fetched, compiled and checked by one replica. */
  validating: 'Validating',
  /** Replicas load the revision beside what serves. */
  staging: 'Staging',
  /** The revision serves on some replicas, and is about to on the others. */
  switching: 'Switching',
  /** A replica that has just begun loads what serves. */
  replicasStarting: 'ReplicasStarting',
  /** There is no PolicyServer of the name that the policy gives. */
  policyServerNotFound: 'PolicyServerNotFound',
  /** The PolicyServer has no replica. */
  noReplicas: 'NoReplicas',
  /** A replica does not answer. */
  replicaUnreachable: 'ReplicaUnreachable',
  /** Not all replicas had the revision at the progress deadline. */
  progressDeadlineExceeded: 'ProgressDeadlineExceeded',
  /** The revision that the policy is pinned to is not kept. */
  pinNotFound: 'PinNotFound',
  /** The API server does not take the policy's webhook configuration. */
  webhookRefused: 'WebhookRefused',
  /** A newer spec came before the revision served. */
  superseded: 'Superseded',
  /** Another revision serves in its place. */
  replaced: 'Replaced',
  /** The newest revision failed, and the controller is set to reject then. */
  degradedRejected: 'DegradedRejected',
} as const;
