// Phases of policies: one case for each situation.
import type { Readiness } from '../../../resources/index.ts';
import { DEFAULT_ROLLOUT_SETTINGS, REASONS } from '../../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from '../admission-rollout-view.ts';
import { NOW, replica, revision, spec, view } from './rollout-scene.ts';

export const LATE = { now: NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs };
const DISARMED = { settings: { ...DEFAULT_ROLLOUT_SETTINGS, disarmed: 'INC-1' } } as const;
const IGNORING = { spec: spec('1', { failurePolicy: 'Ignore' }) };
export const FETCH = {
  state: 'Failed',
  reason: 'FetchFailed',
  message: 'no route to example.com',
  nextRetry: NOW + 1_000,
} as const;
const TOO_NEW = { state: 'Failed', reason: 'UnsupportedVersion', message: 'expected at most 1' } as const;
export const REFUSAL: Readiness = {
  state: 'reconciling',
  reason: REASONS.webhookRefused,
  message: 'rules: Required value',
};

export const failed = (number: number): AdmissionRevision =>
  revision(number, 'Failed', { reason: 'InvalidSettings', message: 'expected a list' });
const retried = (number: number): AdmissionRevision =>
  revision(number, 'Candidate', { reason: 'FetchFailed', message: 'no route', nextRetry: NOW + 1_000 });

export const first = revision(1, 'Serving');
const second = revision(2, 'Serving', { order: 2 });
const retired = revision(1, 'Retired');
export const both = [replica('a', { 1: 'Serving' }), replica('b', { 1: 'Serving' })];

export interface PhaseCase {
  readonly when: string;
  readonly view: AdmissionRolloutView;
  readonly failure?: Readiness;
  /** Default: ready in a phase at rest, else reconciling. */
  readonly isStalled?: true;
  readonly phase: string;
  readonly reason: string;
  readonly message: string;
}

const CASES_WITHOUT_FAILURE: readonly PhaseCase[] = [
  // At rest.
  {
    when: 'every replica serves the newest revision',
    view: view([first], both),
    phase: 'Active',
    reason: 'Serving',
    message: 'revision 1 serves on every replica',
  },
  {
    when: 'the newest revision is pinned',
    view: view([first], both, { pin: 1 }),
    phase: 'Active',
    reason: 'Pinned',
    message: 'revision 1 serves on every replica, and is pinned',
  },
  {
    when: 'an older revision is pinned',
    view: view([first, revision(2, 'Retired', { order: 0 })], both, { pin: 1 }),
    phase: 'RolledBack',
    reason: 'Pinned',
    message: 'revision 1 is pinned and serves on every replica; revision 2, which the spec declares, does not',
  },
  // On its way.
  {
    when: 'the controller has just started',
    view: view([revision(1, 'Candidate')], undefined),
    phase: 'Pending',
    reason: 'ControllerStarting',
    message: 'the controller has just started, and waits for reports of the replicas',
  },
  {
    when: 'a new policy is being checked',
    view: view([revision(1, 'Candidate')], [replica('a')]),
    phase: 'Pending',
    reason: 'Validating',
    message: 'revision 1 is being fetched and checked',
  },
  {
    when: 'a new revision is being checked',
    view: view([first, revision(2, 'Candidate')], both),
    phase: 'Updating',
    reason: 'Validating',
    message: 'revision 2 is being fetched and checked',
  },
  {
    when: 'a revision that waited for a pin is desired again',
    view: view([first, revision(2, 'Candidate', { reason: REASONS.pinned, message: 'held' })], both),
    phase: 'Updating',
    reason: 'Validating',
    message: 'revision 2 is being fetched and checked',
  },
  {
    when: 'a new policy is being loaded',
    view: view([revision(1, 'Validated')], [replica('a', { 1: 'Loading' }), replica('b', { 1: 'Staged' })]),
    phase: 'Pending',
    reason: 'Staging',
    message: 'revision 1 is loaded by 1 of 2 replicas',
  },
  {
    when: 'a new revision is being loaded',
    view: view([first, revision(2, 'Validated')], both),
    phase: 'Updating',
    reason: 'Staging',
    message: 'revision 2 is loaded by 0 of 2 replicas',
  },
  {
    when: 'every replica has loaded it',
    view: view([revision(1, 'Validated')], [replica('a', { 1: 'Staged' })]),
    phase: 'Pending',
    reason: 'Staging',
    message: 'revision 1 is loaded by 1 of 1 replicas',
  },
  {
    when: 'one replica has switched',
    view: view([retired, second], [replica('a', { 2: 'Serving' }), replica('b', { 1: 'Serving', 2: 'Staged' })]),
    phase: 'Updating',
    reason: 'Switching',
    message: 'revision 2 serves on 1 of 2 replicas',
  },
  {
    when: 'a new policy serves on one replica',
    view: view([first], [replica('a', { 1: 'Serving' }), replica('b', { 1: 'Staged' })], { isCovered: false }),
    phase: 'Pending',
    reason: 'Switching',
    message: 'revision 1 serves on 1 of 2 replicas',
  },
  {
    when: 'a new policy serves and is not covered yet',
    view: view([first], both, { isCovered: false }),
    phase: 'Pending',
    reason: 'Switching',
    message: 'revision 1 serves on every replica; its webhook is not written yet',
  },
  {
    when: 'a replica is new, and has not reported',
    view: view([first], [replica('a', { 1: 'Serving' }), replica('b', {}, 'connecting')], LATE),
    phase: 'Updating',
    reason: 'ReplicasStarting',
    message: 'revision 1 serves on 1 of 2 replicas',
  },
  {
    when: 'all replicas have restarted',
    view: view([first], [replica('a', { 1: 'Loading' }), replica('b', { 1: 'Loading' })], LATE),
    phase: 'Updating',
    reason: 'ReplicasStarting',
    message: 'revision 1 serves on 0 of 2 replicas',
  },
  // The revision failed.
  {
    when: 'a new policy failed',
    view: view([failed(1)], [replica('a')], { isCovered: true }),
    phase: 'Error',
    reason: 'InvalidSettings',
    message: 'revision 1 failed: expected a list; nothing serves: requests are rejected (failurePolicy Fail)',
    isStalled: true,
  },
  {
    when: 'a new policy with failurePolicy Ignore failed',
    view: view([{ ...failed(1), snapshot: IGNORING.spec }], [replica('a')], { isCovered: true }),
    phase: 'Error',
    reason: 'InvalidSettings',
    message:
      'revision 1 failed: expected a list; nothing serves: requests are admitted with a warning (failurePolicy Ignore)',
    isStalled: true,
  },
  {
    when: 'a new policy failed, and is not covered',
    view: view([failed(1)], [replica('a')]),
    phase: 'Error',
    reason: 'InvalidSettings',
    message: 'revision 1 failed: expected a list; nothing serves, and the policy is not enforced yet',
    isStalled: true,
  },
  {
    when: 'a new revision failed',
    view: view([first, failed(2)], both),
    phase: 'Degraded',
    reason: 'InvalidSettings',
    message: 'revision 2 failed: expected a list; revision 1 serves',
    isStalled: true,
  },
  {
    when: 'a new revision failed, and degraded policies reject',
    view: view([{ ...retired, reason: REASONS.degradedRejected }, failed(2)], [replica('a')]),
    phase: 'Error',
    reason: 'InvalidSettings',
    message: 'revision 2 failed: expected a list; nothing serves: requests are rejected (failurePolicy Fail)',
    isStalled: true,
  },
  {
    when: 'a new policy cannot be fetched for now',
    view: view([retried(1)], [replica('a')], { isCovered: true }),
    phase: 'Error',
    reason: 'FetchFailed',
    message: 'revision 1 cannot be validated yet: no route; nothing serves: requests are rejected (failurePolicy Fail)',
  },
  {
    when: 'a new revision cannot be fetched for now',
    view: view([first, retried(2)], both),
    phase: 'Degraded',
    reason: 'FetchFailed',
    message: 'revision 2 cannot be validated yet: no route; revision 1 serves',
  },
  {
    when: 'a pin holds a failed revision',
    view: view([failed(1), second], [replica('a', { 2: 'Serving' })], { pin: 1 }),
    phase: 'Degraded',
    reason: 'InvalidSettings',
    message: 'revision 1 failed: expected a list; revision 2 serves',
    isStalled: true,
  },
  {
    when: 'a pin names a revision that does not exist',
    view: view([retired, second], [replica('a', { 2: 'Serving' })], { pin: 7 }),
    phase: 'Degraded',
    reason: 'PinNotFound',
    message:
      'the policy is pinned to revision 7, which does not exist (existing: 1, 2): pin another one, or remove the pin; revision 2 serves',
    isStalled: true,
  },
  {
    when: 'a new policy is pinned to a revision that does not exist',
    view: view([revision(1, 'Candidate', { reason: REASONS.pinned })], [replica('a')], { pin: 7, isCovered: true }),
    phase: 'Error',
    reason: 'PinNotFound',
    message:
      'the policy is pinned to revision 7, which does not exist (existing: 1): pin another one, or remove the pin; nothing serves: requests are rejected (failurePolicy Fail of revision 1)',
    isStalled: true,
  },
  // Replicas have failures.
  {
    when: 'the server of a new policy does not exist',
    view: view([revision(1, 'Candidate')], [], { hasPolicyServer: false }),
    phase: 'Pending',
    reason: 'PolicyServerNotFound',
    message:
      'PolicyServer default does not exist, and has no replica: create it; nothing serves, and the policy is not enforced yet',
  },
  {
    when: 'the server of a policy was deleted',
    view: view([first], [], { hasPolicyServer: false }),
    phase: 'Error',
    reason: 'PolicyServerNotFound',
    message:
      'PolicyServer default does not exist, and has no replica: create it; nothing serves: requests are rejected (failurePolicy Fail)',
  },
  {
    when: 'a new policy has no replica',
    view: view([revision(1, 'Candidate')], []),
    phase: 'Pending',
    reason: 'NoReplicas',
    message: 'PolicyServer default has no replica: start one; nothing serves, and the policy is not enforced yet',
  },
  {
    when: 'a policy that served has no replica left',
    view: view([first], []),
    phase: 'Error',
    reason: 'NoReplicas',
    message:
      'PolicyServer default has no replica: start one; nothing serves: requests are rejected (failurePolicy Fail)',
  },
  {
    when: 'one replica is not connected',
    view: view([first], [replica('a', { 1: 'Serving' }), replica('b', {}, 'lost')]),
    phase: 'Degraded',
    reason: 'ReplicaUnreachable',
    message:
      'revision 1 is not on 1 of 2 replicas: b: is not connected to the controller; revision 1 answers requests (a); the answer of b is not known, and where API servers do not reach a replica, requests are rejected (failurePolicy Fail)',
  },
  {
    when: 'no replica is connected, so the serving revision is unknown',
    view: view([first], [replica('a', {}, 'lost'), replica('b', {}, 'lost')]),
    phase: 'Degraded',
    reason: 'ReplicaUnreachable',
    message:
      'revision 1 is not on 2 of 2 replicas: a: is not connected to the controller; b: is not connected to the controller; the answer of a, b is not known, and where API servers do not reach a replica, requests are rejected (failurePolicy Fail)',
  },
  {
    when: 'no replica is connected to check a new policy',
    view: view([revision(1, 'Candidate')], [replica('a', {}, 'lost')]),
    phase: 'Pending',
    reason: 'ReplicaUnreachable',
    message:
      'revision 1 cannot be checked: no replica is connected to the controller; nothing serves, and the policy is not enforced yet',
  },
  {
    when: 'no replica is connected to check a new revision',
    view: view([first, revision(2, 'Candidate')], [replica('a', {}, 'lost')]),
    phase: 'Degraded',
    reason: 'ReplicaUnreachable',
    message:
      'revision 2 cannot be checked: no replica is connected to the controller; the answer of a is not known, and where API servers do not reach a replica, requests are rejected (failurePolicy Fail of revision 1)',
  },
  {
    when: 'one replica cannot load a new policy',
    view: view([revision(1, 'Validated')], [replica('a', { 1: 'Staged' }), replica('b', { 1: FETCH })]),
    phase: 'Degraded',
    reason: 'FetchFailed',
    message:
      'revision 1 is not on 1 of 2 replicas: b: no route to example.com; nothing serves, and the policy is not enforced yet',
  },
  {
    when: 'no replica can load a new policy',
    view: view([revision(1, 'Validated')], [replica('a', { 1: FETCH })], { isCovered: true }),
    phase: 'Error',
    reason: 'FetchFailed',
    message:
      'revision 1 is not on 1 of 1 replicas: a: no route to example.com; nothing serves: requests are admitted without the policy, because no replica evaluates it',
  },
  {
    when: 'no replica can load a new revision, and all serve the previous one',
    view: view([first, revision(2, 'Validated')], [replica('a', { 1: 'Serving', 2: FETCH })]),
    phase: 'Degraded',
    reason: 'FetchFailed',
    message: 'revision 2 is not on 1 of 1 replicas: a: no route to example.com; revision 1 serves',
  },
  {
    when: 'one replica serves an older revision, because it cannot load the newer one',
    view: view([retired, second], [replica('a', { 2: 'Serving' }), replica('b', { 1: 'Serving', 2: FETCH })]),
    phase: 'Degraded',
    reason: 'FetchFailed',
    message: 'revision 2 is not on 1 of 2 replicas: b: no route to example.com',
  },
  {
    when: 'no replica can load the serving revision',
    view: view([first], [replica('a', { 1: FETCH }), replica('b', { 1: FETCH })]),
    phase: 'Error',
    reason: 'FetchFailed',
    message:
      'revision 1 is not on 2 of 2 replicas: a: no route to example.com; b: no route to example.com; nothing serves: requests are rejected (failurePolicy Fail)',
  },
  {
    when: 'neither a new revision nor the serving one can be loaded: first what stops requests',
    view: view([first, failed(2)], [replica('a', { 1: FETCH })]),
    phase: 'Error',
    reason: 'FetchFailed',
    message:
      'revision 1 is not on 1 of 1 replicas: a: no route to example.com; revision 2 failed: expected a list; nothing serves: requests are rejected (failurePolicy Fail of revision 1)',
    isStalled: true,
  },
  {
    when: 'the serving revision cannot be loaded, and a new one is being checked',
    view: view([first, revision(2, 'Candidate')], [replica('a', { 1: FETCH })]),
    phase: 'Error',
    reason: 'FetchFailed',
    message:
      'revision 1 is not on 1 of 1 replicas: a: no route to example.com; revision 2 is being fetched and checked; nothing serves: requests are rejected (failurePolicy Fail of revision 1)',
  },
  {
    when: 'one replica restarts, and the other one is not connected',
    view: view([first], [replica('a', { 1: 'Loading' }), replica('b', {}, 'lost')]),
    phase: 'Error',
    reason: 'ReplicaUnreachable',
    message:
      'revision 1 is not on 1 of 2 replicas: b: is not connected to the controller; requests are rejected (failurePolicy Fail) (a); the answer of b is not known, and where API servers do not reach a replica, requests are rejected (failurePolicy Fail)',
  },
  {
    when: 'an error of a replica comes before lost connections',
    view: view([first], [replica('a', {}, 'lost'), replica('b', { 1: FETCH }), replica('c', { 1: 'Serving' })]),
    phase: 'Degraded',
    reason: 'FetchFailed',
    message:
      'revision 1 is not on 2 of 3 replicas: b: no route to example.com; a: is not connected to the controller; requests are rejected (failurePolicy Fail) (b); revision 1 answers requests (c); the answer of a is not known, and where API servers do not reach a replica, requests are rejected (failurePolicy Fail)',
  },
  {
    when: 'one replica can never load the revision that the others serve',
    view: view([first], [replica('a', { 1: TOO_NEW }), replica('b', { 1: 'Serving' })]),
    phase: 'Degraded',
    reason: 'UnsupportedVersion',
    message:
      'revision 1 is not on 1 of 2 replicas: a: expected at most 1; requests are rejected (failurePolicy Fail) (a); revision 1 answers requests (b)',
    isStalled: true,
  },
  {
    when: 'a replica failed without a reason',
    view: view([first], [replica('a', { 1: 'Failed' }), replica('b', { 1: 'Serving' })]),
    phase: 'Degraded',
    reason: 'ReplicaFailed',
    message:
      'revision 1 is not on 1 of 2 replicas: a: gives no reason; requests are rejected (failurePolicy Fail) (a); revision 1 answers requests (b)',
    isStalled: true,
  },
  {
    when: 'the only replica failed without a reason',
    view: view([first], [replica('a', { 1: 'Failed' })]),
    phase: 'Error',
    reason: 'ReplicaFailed',
    message:
      'revision 1 is not on 1 of 1 replicas: a: gives no reason; nothing serves: requests are rejected (failurePolicy Fail)',
    isStalled: true,
  },
  {
    when: 'not every replica has loaded a new revision at the deadline',
    view: view(
      [first, revision(2, 'Validated')],
      [replica('a', { 1: 'Serving', 2: 'Staged' }), ...both.slice(1)],
      LATE,
    ),
    phase: 'Degraded',
    reason: 'ProgressDeadlineExceeded',
    message: 'after 60 s revision 2 is loaded by 1 of 2 replicas, not by b; revision 1 serves',
    isStalled: true,
  },
  {
    when: 'not every replica has loaded a new policy at the deadline',
    view: view([revision(1, 'Validated')], [replica('a', { 1: 'Loading' })], { ...LATE, isCovered: true }),
    phase: 'Error',
    reason: 'ProgressDeadlineExceeded',
    message:
      'after 60 s revision 1 is loaded by 0 of 1 replicas, not by a; nothing serves: requests are admitted without the policy, because no replica evaluates it',
    isStalled: true,
  },
  {
    when: 'a running replica does not switch to the serving revision',
    view: view([retired, second], [replica('a', { 2: 'Serving' }), replica('b', { 1: 'Serving' })], LATE),
    phase: 'Degraded',
    reason: 'ProgressDeadlineExceeded',
    message: 'revision 2 serves on 1 of 2 replicas after 60 s, not by b',
    isStalled: true,
  },
  // The webhook configuration cannot be written.
  {
    when: 'the API server rejects the first webhook configuration',
    view: view([first], both, { isCovered: false }),
    failure: REFUSAL,
    phase: 'Error',
    reason: 'WebhookRefused',
    message: 'the webhook configuration could not be written: rules: Required value',
  },
  {
    when: 'the API server rejects a change of the webhook configuration',
    view: view([first], both),
    failure: REFUSAL,
    phase: 'Degraded',
    reason: 'WebhookRefused',
    message: 'the webhook configuration could not be written: rules: Required value',
  },
  {
    when: 'the webhook configuration is outdated, and nothing answers',
    view: view([failed(1)], [replica('a')], { isCovered: true }),
    failure: REFUSAL,
    phase: 'Error',
    reason: 'WebhookRefused',
    message: 'the webhook configuration could not be written: rules: Required value',
    isStalled: true,
  },
];

const FORBIDDEN: Readiness = {
  state: 'reconciling',
  reason: REASONS.reconcileFailed,
  message: 'policyrevisions is forbidden',
};
const FAILURES: readonly Readiness[] = [
  FORBIDDEN,
  { state: 'reconciling', reason: REASONS.contested, message: 'another writer changes it' },
];

/** A failed write of the controller: one case of each phase. */
const FAILED_WRITES: readonly PhaseCase[] = [
  'Pending',
  'Updating',
  'Active',
  'RolledBack',
  'Degraded',
  'Error',
].flatMap((phase) => {
  const base = CASES_WITHOUT_FAILURE.find((one) => one.phase === phase && one.failure === undefined);
  return base === undefined
    ? []
    : FAILURES.map((failure) => ({
        ...base,
        when: `${base.when}, and a write failed`,
        failure,
        reason: failure.reason,
        message: `${failure.message}; ${base.message}`,
      }));
});

export const PHASE_CASES: readonly PhaseCase[] = [
  ...CASES_WITHOUT_FAILURE,
  ...FAILED_WRITES,
  {
    when: 'a revision could not be created for the spec',
    view: view([first], both, { spec: spec('2'), generation: 2 }),
    failure: FORBIDDEN,
    phase: 'Updating',
    reason: 'ReconcileFailed',
    message: 'policyrevisions is forbidden; the spec has no revision yet',
  },
  {
    when: 'the cluster serves a schema without the parameters that the policy had',
    view: view([first], both, { spec: spec('2'), generation: 2 }),
    failure: { state: 'reconciling', reason: 'SchemaReplaced', message: 'another schema' },
    phase: 'Updating',
    reason: 'SchemaReplaced',
    message: 'another schema; the spec has no revision yet',
  },
  {
    when: 'a revision could not be created for the first spec',
    view: view([], both),
    failure: FORBIDDEN,
    phase: 'Pending',
    reason: 'ReconcileFailed',
    message: 'policyrevisions is forbidden; the spec has no revision yet',
  },
  {
    when: 'the API server would reject the same write again',
    view: view([first], both),
    failure: { state: 'stalled', reason: 'ReconcileFailed', message: 'too large' },
    phase: 'Active',
    reason: 'ReconcileFailed',
    message: 'too large; revision 1 serves on every replica',
    isStalled: true,
  },
  {
    when: 'the policy is being disarmed',
    view: view([first], both, DISARMED),
    phase: 'Error',
    reason: 'Disarmed',
    message: 'is being disarmed (INC-1)',
  },
  {
    when: 'the policy is disarmed',
    view: view([retired], both, { ...DISARMED, isCovered: false }),
    phase: 'Error',
    reason: 'Disarmed',
    message: 'disarmed (INC-1) until the annotation portcullis.dev/disarmed is removed',
    isStalled: true,
  },
];
