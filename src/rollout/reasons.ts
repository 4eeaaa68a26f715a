// Reasons of phases of policies and of states of revisions. Documented in docs/lifecycle.md.

import { DEGRADED_REJECTED, DISARMED, UNINSTALLED } from '../resources/index.ts';
import { CONTESTED_REASON, FAILED_REASON } from '../runtime/index.ts';

/** Reasons of the controller; replicas and pre-validation add those of policy servers (`PolicyReason`). */
export const REASONS = {
  /** Every replica serves the desired revision. */
  serving: 'Serving',
  /** A pin holds the serving revision. On a revision: it waits for the end of a pin. */
  pinned: 'Pinned',
  /** One replica fetches, compiles and checks a new revision. */
  validating: 'Validating',
  /** Replicas load the revision beside the serving one. */
  staging: 'Staging',
  /** Replicas are switching to the revision, or its webhook is not written yet. */
  switching: 'Switching',
  /** The controller has just started, and the replicas have not reported yet. */
  controllerStarting: 'ControllerStarting',
  /** A replica that has just started loads the serving revision. */
  replicasStarting: 'ReplicasStarting',
  /** The policy's PolicyServer does not exist. */
  policyServerNotFound: 'PolicyServerNotFound',
  /** The PolicyServer has no replica. */
  noReplicas: 'NoReplicas',
  /** A replica is not connected to the controller. */
  replicaUnreachable: 'ReplicaUnreachable',
  /** A replica could not load the revision, and gave no reason. */
  replicaFailed: 'ReplicaFailed',
  /** Not all replicas have loaded the revision within the progress deadline. */
  progressDeadlineExceeded: 'ProgressDeadlineExceeded',
  /** The pinned revision does not exist. */
  pinNotFound: 'PinNotFound',
  /** The API server rejects the policy's webhook configuration. */
  webhookRefused: 'WebhookRefused',
  /**
   * The cluster served a schema of the policy kinds without parameters, which the policy had, or with a PolicyServer that can change:
   * nothing new is rolled out.
   */
  schemaReplaced: 'SchemaReplaced',
  /** A write of the controller failed; the message is that of the API server. */
  reconcileFailed: FAILED_REASON,
  /** Another writer keeps changing an object that the controller maintains. */
  contested: CONTESTED_REASON,
  /** On a revision: it differs from another one only in how the policy is enforced, and has its modules and validation. */
  inherited: 'Inherited',
  /** On a revision: a newer spec, or a pin, replaced it before it served. */
  superseded: 'Superseded',
  /** On a revision: another one serves instead. */
  replaced: 'Replaced',
  /** On a revision: it was retired because the newest one failed, and the controller is set to reject then. */
  degradedRejected: DEGRADED_REJECTED,
  /** On a revision: it was retired because the newest one failed, and the controller is set to ignore the policy then. */
  degradedIgnored: 'DegradedIgnored',
  /** An annotation of the policy, or of its PolicyServer, ends its enforcement. Also on the revision that served before. */
  disarmed: DISARMED,
  /** Of the condition Enforced: no revision has ever served. */
  notServedYet: 'NotServedYet',
  /** Of the condition Enforced: nothing serves, and the failurePolicy answers. */
  failurePolicy: 'FailurePolicy',
  /** Of the condition Enforced: API servers send requests, and no replica evaluates the policy. */
  notEvaluated: 'NotEvaluated',
  /** Of the condition Enforced: replicas answer differently. */
  answersDiffer: 'AnswersDiffer',
  /** Of the condition Enforced: a replica is connected, and does not say what it answers. */
  answersUnknown: 'AnswersUnknown',
  /** The product was uninstalled: nothing enforces the policy, and the status is the last one. */
  uninstalled: UNINSTALLED,
} as const;
