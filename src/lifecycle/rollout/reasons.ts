// Why a policy is in its phase, or a revision in its state: one word each, for programs. docs/lifecycle.md says the same for
// people.

import { CONTESTED_REASON, FAILED_REASON } from '../../runtime/index.ts';

/** Reasons that the lifecycle gives by itself; replicas and pre-validation add those of policy servers (`PolicyReason`). */
export const REASONS = {
  /** The desired revision serves on every replica. */
  serving: 'Serving',
  /** A pin holds the revision that serves. Of a revision: it waits for the end of a pin. */
  pinned: 'Pinned',
  /** A new revision is being fetched, compiled and checked by one replica. */
  validating: 'Validating',
  /** Replicas load the revision beside what serves. */
  staging: 'Staging',
  /** The revision serves on some replicas, and is about to on the others; or the API server is about to ask. */
  switching: 'Switching',
  /** The controller has just begun, and has not heard the replicas yet. */
  controllerStarting: 'ControllerStarting',
  /** A replica that has just begun loads what serves. */
  replicasStarting: 'ReplicasStarting',
  /** There is no PolicyServer of the name that the policy gives. */
  policyServerNotFound: 'PolicyServerNotFound',
  /** The PolicyServer has no replica. */
  noReplicas: 'NoReplicas',
  /** A replica does not answer the controller. */
  replicaUnreachable: 'ReplicaUnreachable',
  /** A replica could not load the revision, and did not say why. */
  replicaFailed: 'ReplicaFailed',
  /** Not all replicas had the revision at the progress deadline. */
  progressDeadlineExceeded: 'ProgressDeadlineExceeded',
  /** The revision that the policy is pinned to is not kept. */
  pinNotFound: 'PinNotFound',
  /** The API server does not take the policy's webhook configuration. */
  webhookRefused: 'WebhookRefused',
  /** The controller could not write something; the message has the API server's words. */
  reconcileFailed: FAILED_REASON,
  /** Somebody else changes an object again and again that the controller keeps. */
  contested: CONTESTED_REASON,
  /** Of a revision: a newer spec, or a pin, came before it served. */
  superseded: 'Superseded',
  /** Of a revision: another one serves in its place. */
  replaced: 'Replaced',
  /** Of a revision: it served until the newest one failed, and the controller is set to reject then. */
  degradedRejected: 'DegradedRejected',
} as const;
