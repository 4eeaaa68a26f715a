// Plans by view. rollout-model.test.ts checks sequences of plans.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pinnedSpec } from '../../control/index.ts';
import {
  DEFAULT_ROLLOUT_SETTINGS,
  planRollout,
  REASONS,
  type ReplicaFacts,
  type RolloutStep,
} from '../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './admission-rollout-view.ts';
import { MODULES, NOW, replica, revision, spec, view } from './testing/rollout-scene.ts';

const DEADLINE = NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs;
const ALL = { settings: { ...DEFAULT_ROLLOUT_SETTINGS, strategy: 'AllReplicas' } } as const;
const REJECT = { settings: { ...DEFAULT_ROLLOUT_SETTINGS, degraded: 'Reject' } } as const;

const first = revision(1, 'Serving');
const retired = revision(1, 'Retired');
const validated = revision(2, 'Validated');
const second = revision(2, 'Serving', { order: 2 });
const failed = revision(2, 'Failed', { reason: 'InvalidSettings' });
const both = [replica('a', { 1: 'Serving' }), replica('b', { 1: 'Serving' })];
const ready = [replica('a', { 1: 'Serving', 2: 'Staged' }), replica('b', { 1: 'Serving', 2: 'Staged' })];
const partly = [replica('a', { 1: 'Serving', 2: 'Staged' }), replica('b', { 1: 'Serving', 2: 'Loading' })];

const refused = { reason: 'InvalidParameters', triedParameters: 'x', nextRetry: NOW } as const;
/** Replicas that serve revision 1, and see these parameters of revision 2. */
const seeing = (...parameters: readonly string[]): ReplicaFacts[] =>
  parameters.map((one) => replica(one, { 1: 'Serving', 2: { state: 'Failed', parameters: one } }));

/** The spec after a rollback to revision 1. */
const pinned = pinnedSpec(first.snapshot, MODULES);

/** A short text for a step. */
function inShort(step: RolloutStep): string {
  switch (step.type) {
    case 'create':
      return `create ${step.revision}${step.rollbackOf === undefined ? '' : ` of ${step.rollbackOf}`}${step.ownWebhook ? ' with a webhook of its own' : ''}${step.refresh === undefined ? '' : `, refresh ${step.refresh}`}`;
    case 'prevalidate':
      return `try ${step.revision}`;
    case 'inherit':
      return `${step.revision} as ${step.from}`;
    case 'transition':
      return `${step.revision} is ${[step.to, step.reason, step.order].filter((text) => text !== '' && text !== undefined).join(' ')}`;
    case 'refresh':
      return `refresh ${step.revision}: ${step.refresh}`;
    case 'dryRun':
      return `dryRun ${step.revision}`;
    case 'widen':
      return `widen ${step.revisions.join(' ')}`;
    case 'enforce':
      return `enforce ${step.revision ?? 'spec'}`;
    case 'setEnforced':
      return `${step.revision} is ${step.isEnforced ? 'enforced' : 'not enforced'}`;
    case 'uncover':
      return 'uncover';
    case 'delete':
      return `delete ${step.revisions.join(' ')}`;
    default:
      return step satisfies never;
  }
}

function retiredOnes(...numbers: readonly number[]): AdmissionRevision[] {
  return numbers.map((number) => revision(number, 'Retired'));
}

interface Case {
  readonly when: string;
  readonly view: AdmissionRolloutView;
  readonly steps: readonly string[];
  readonly wakeAt?: number;
}

/** What an annotation of the policy, or of its PolicyServer, sets. */
const DISARMED = { settings: { ...DEFAULT_ROLLOUT_SETTINGS, disarmed: 'INC-1' } } as const;

const STRICT = { settings: { ...DEFAULT_ROLLOUT_SETTINGS, unserved: 'Reject' } } as const;
const IGNORING = { settings: { ...DEFAULT_ROLLOUT_SETTINGS, degraded: 'Ignore' } } as const;

const CASES: readonly Case[] = [
  // Disarmed.
  {
    when: 'it is disarmed while a revision serves',
    view: view([first], both, DISARMED),
    steps: ['1 is Retired Disarmed', 'uncover'],
  },
  {
    when: 'it is disarmed while nothing can serve and no replica is there',
    view: view([first], [], DISARMED),
    steps: ['1 is Retired Disarmed', 'uncover'],
  },
  {
    when: 'it is disarmed, and a change waits',
    view: view([retired, revision(2, 'Candidate')], both, { ...DISARMED, spec: spec('2') }),
    steps: ['uncover'],
  },
  {
    when: 'it is armed again',
    view: view([revision(1, 'Retired', { reason: 'Disarmed' })], [replica('a')]),
    steps: ['1 is Serving 2'],
  },
  {
    when: 'it is armed again, and a change waits',
    view: view([revision(1, 'Retired', { reason: 'Disarmed' }), revision(2, 'Candidate')], [replica('a')], {
      spec: spec('2'),
    }),
    steps: ['1 is Serving 2'],
  },
  {
    when: 'it is armed again before the replicas are known',
    view: view([revision(1, 'Retired', { reason: 'Disarmed' })], undefined),
    steps: ['1 is Serving 2'],
  },
  {
    when: 'no connected replica can load what serves, and no webhook is for it',
    view: view([first], [replica('a', { 1: 'Failed' }), replica('b', { 1: 'Failed' })], { isCovered: false }),
    steps: ['enforce 1'],
    wakeAt: NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs,
  },
  // Degraded policies are ignored, and nothing can serve.
  {
    when: 'degraded policies are ignored, and no replica is there',
    view: view([first], [], IGNORING),
    steps: ['1 is not enforced', 'uncover'],
  },
  {
    when: 'degraded policies are ignored, and no pod of a replica is ready',
    view: view([first], [{ ...replica('a', {}, 'lost'), isUnready: true }], IGNORING),
    steps: ['1 is not enforced', 'uncover'],
    wakeAt: NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs,
  },
  {
    when: 'degraded policies are ignored, and a replica that is lost may get requests',
    view: view([first], [{ ...replica('a', {}, 'lost'), isUnready: true }, replica('b', {}, 'lost')], IGNORING),
    steps: [],
    wakeAt: NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs,
  },
  {
    when: 'degraded policies are ignored, and a replica starts again',
    view: view([revision(1, 'Serving', { isEnforced: false })], [replica('a', {}, 'connecting')], IGNORING),
    steps: ['uncover'],
    wakeAt: NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs,
  },
  // Unserved policies reject, and no replica can load the first revision.
  {
    when: 'no replica can load its first revision, where unserved policies reject',
    view: view([revision(1, 'Validated', { isEnforced: false })], [replica('a', { 1: 'Failed' })], STRICT),
    steps: ['1 is enforced', 'dryRun 1', 'enforce spec'],
    wakeAt: NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs,
  },
  {
    when: 'its first revision is enforced, and unserved policies do not reject any more',
    view: view([revision(1, 'Validated', { isEnforced: true })], [replica('a', { 1: 'Failed' })]),
    steps: ['1 is not enforced', 'uncover'],
    wakeAt: NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs,
  },
  {
    when: 'its first revision is on its way, where unserved policies reject',
    view: view([revision(1, 'Validated', { isEnforced: false })], [replica('a', { 1: 'Loading' })], STRICT),
    steps: ['dryRun 1'],
    wakeAt: NOW + DEFAULT_ROLLOUT_SETTINGS.progressDeadlineMs,
  },
  // The spec has no revision.
  { when: 'a policy is new', view: view([], []), steps: ['create 1'] },
  { when: 'its spec changed', view: view([first], both, { spec: spec('2') }), steps: ['create 2'] },
  {
    when: 'it gets a webhook of its own',
    view: view([first], both, { ownWebhook: true }),
    steps: ['create 2 with a webhook of its own'],
  },
  {
    when: 'it returns to a shared webhook, with a spec that names digests',
    view: view([revision(1, 'Serving', { snapshot: pinned, ownWebhook: true })], both, { ownWebhook: false }),
    steps: ['create 2'],
  },
  {
    when: 'its spec changed before the replicas are known',
    view: view([first], undefined, { spec: spec('2') }),
    steps: ['create 2'],
  },
  {
    when: 'its spec is the pinned spec of a revision',
    view: view([retired, second], ready, {
      spec: spec('1', { module: `${MODULES[0].module}@${MODULES[0].digest}` }),
    }),
    steps: ['create 3 of 1'],
  },
  {
    when: 'its spec changed, and older revisions are deleted: numbers are not reused',
    view: view([revision(4, 'Retired'), revision(7, 'Serving')], both, { spec: spec('8') }),
    steps: ['create 8'],
  },
  // Refreshes.
  {
    when: 'a refresh is requested',
    view: view([first], both, { refresh: 'now' }),
    steps: ['refresh 1: now', 'enforce 1'],
  },
  {
    when: 'the refresh was handled by the revision',
    view: view([revision(1, 'Serving', { refresh: 'now' })], both, { refresh: 'now' }),
    steps: ['enforce 1'],
  },
  {
    when: 'the refresh found nothing new',
    view: view([revision(1, 'Serving', { refresh: 'before', refreshed: 'now' })], both, { refresh: 'now' }),
    steps: ['enforce 1'],
  },
  {
    when: 'an earlier refresh is requested again',
    view: view([revision(1, 'Serving', { refresh: 'before', refreshed: 'now' })], both, { refresh: 'before' }),
    steps: ['refresh 1: before', 'enforce 1'],
  },
  {
    when: 'the annotation is removed',
    view: view([revision(1, 'Serving', { refresh: 'now' })], both),
    steps: ['enforce 1'],
  },
  {
    when: 'a refresh is requested and the spec changed: the new revision resolves its modules anyway',
    view: view([first], both, { refresh: 'now', spec: spec('2') }),
    steps: ['create 2, refresh now'],
  },
  {
    when: 'a refresh is requested while the newest revision is about to resolve its modules',
    view: view([first, revision(2, 'Candidate')], both, { refresh: 'now' }),
    steps: ['try 2', 'enforce 1'],
  },
  {
    when: 'a refresh is requested after a failure',
    view: view([first, failed], both, { refresh: 'now' }),
    steps: ['create 3, refresh now'],
  },
  {
    when: 'a refresh is requested while a pre-validation is due',
    view: view([revision(1, 'Superseded', { modules: [] }), second], [replica('a', { 2: 'Serving' })], {
      refresh: 'now',
      pin: 1,
    }),
    steps: ['refresh 2: now', '1 is Candidate', 'enforce 2'],
  },
  {
    when: 'a refresh is requested and no replica is connected',
    view: view([first], [replica('a', {}, 'lost')], { refresh: 'now' }),
    steps: [],
    wakeAt: DEADLINE,
  },
  // Candidates.
  { when: 'it is a candidate', view: view([revision(1, 'Candidate')], [replica('a')]), steps: ['try 1'] },
  { when: 'there is no replica for the pre-validation', view: view([revision(1, 'Candidate')], []), steps: [] },
  {
    when: 'no replica is connected for the pre-validation',
    view: view([revision(1, 'Candidate')], [replica('a', {}, 'lost'), replica('b', {}, 'connecting')]),
    steps: [],
  },
  { when: 'the replicas are not known yet', view: view([revision(1, 'Candidate')], undefined), steps: [] },
  {
    when: 'it failed for a transient reason',
    view: view([first, revision(2, 'Candidate', { reason: 'FetchFailed', nextRetry: NOW + 500 })], both),
    steps: ['enforce 1'],
    wakeAt: NOW + 500,
  },
  {
    when: 'the retry is due',
    view: view([first, revision(2, 'Candidate', { reason: 'FetchFailed', nextRetry: NOW })], both),
    steps: ['try 2', 'enforce 1'],
  },
  {
    when: 'it failed for parameters that a replica sees changed',
    view: view([first, revision(2, 'Failed', refused)], seeing('x', 'y')),
    steps: ['try 2', 'enforce 1'],
  },
  {
    when: 'it failed for parameters that are the same',
    view: view([first, revision(2, 'Failed', refused)], seeing('x')),
    steps: ['enforce 1'],
  },
  {
    when: 'parameters change again and again',
    view: view([first, revision(2, 'Failed', { ...refused, nextRetry: NOW + 500 })], seeing('y')),
    steps: ['enforce 1'],
    wakeAt: NOW + 500,
  },
  {
    when: 'parameters change for which a revision failed that is not desired any more',
    view: view([first, revision(2, 'Failed', refused), revision(3, 'Serving', { order: 3 })], seeing('y')),
    steps: ['1 is Retired Replaced'],
    wakeAt: DEADLINE,
  },
  {
    when: 'the first revision failed for parameters that have changed',
    view: view([revision(1, 'Failed', refused)], [replica('a', { 1: { state: 'Failed', parameters: 'y' } })]),
    steps: ['1 is not enforced', 'try 1', 'uncover'],
  },
  {
    when: 'a new policy failed for a transient reason: it is not enforced yet',
    view: view(
      [revision(1, 'Candidate', { reason: 'FetchFailed', nextRetry: NOW + 500, isEnforced: false })],
      [replica('a')],
    ),
    steps: ['uncover'],
    wakeAt: NOW + 500,
  },
  {
    when: 'a new policy failed, and is enforced still',
    view: view([revision(1, 'Failed', { reason: 'InvalidSettings' })], [replica('a')]),
    steps: ['1 is not enforced', 'uncover'],
  },
  {
    when: 'a new policy failed, and unserved policies reject',
    view: view([revision(1, 'Failed', { reason: 'InvalidSettings' })], [replica('a')], {
      settings: { ...DEFAULT_ROLLOUT_SETTINGS, unserved: 'Reject' },
    }),
    steps: ['enforce spec'],
  },
  {
    when: 'degraded policies reject, and a correction is on its way: the policy stays covered',
    view: view([revision(1, 'Retired'), revision(2, 'Failed'), revision(3, 'Candidate')], [replica('a')], REJECT),
    steps: ['try 3', 'enforce 1'],
  },
  {
    when: 'nothing ever served, and the newest waits for the end of a pin, under former settings',
    view: view([revision(1, 'Failed'), revision(2, 'Candidate', { reason: REASONS.pinned })], [replica('a')], {
      pin: 1,
    }),
    steps: ['2 is not enforced', 'uncover'],
  },
  {
    when: 'nothing serves any more, and degraded policies reject',
    view: view([revision(1, 'Retired'), revision(2, 'Failed', { reason: 'InvalidSettings' })], [replica('a')], REJECT),
    steps: ['enforce 1'],
  },
  {
    when: 'a change failed, and degraded policies are ignored',
    view: view([first, revision(2, 'Failed', { reason: 'InvalidSettings', isEnforced: false })], both, {
      settings: { ...DEFAULT_ROLLOUT_SETTINGS, degraded: 'Ignore' },
    }),
    steps: ['1 is Retired DegradedIgnored', 'enforce 1'],
  },
  // Staging.
  {
    when: 'replicas load it',
    view: view([first, validated], partly),
    steps: ['dryRun 2', 'enforce 1'],
    wakeAt: DEADLINE,
  },
  {
    when: 'all replicas have loaded it',
    view: view([first, validated], ready),
    steps: ['dryRun 2', 'widen 1 2', '2 is Serving 2'],
    wakeAt: DEADLINE,
  },
  {
    when: 'all replicas have loaded a new policy',
    view: view([revision(1, 'Validated')], [replica('a', { 1: 'Staged' })]),
    steps: ['dryRun 1', '1 is Serving 1'],
    wakeAt: DEADLINE,
  },
  {
    when: 'all have loaded it, and the published phase is still at rest',
    view: view([first, validated], ready, { phase: 'Active' }),
    steps: ['dryRun 2'],
    wakeAt: NOW,
  },
  {
    when: 'a replica is new',
    view: view([first, validated], [...ready, replica('c', {}, 'connecting')]),
    steps: ['dryRun 2', 'enforce 1'],
    wakeAt: DEADLINE,
  },
  {
    when: 'a replica is not connected',
    view: view([first, validated], [...ready, replica('c', {}, 'lost')]),
    steps: ['dryRun 2', 'enforce 1'],
    wakeAt: DEADLINE,
  },
  {
    when: 'some have loaded it at the deadline',
    view: view([first, validated], partly, { now: DEADLINE }),
    steps: ['dryRun 2', 'widen 1 2', '2 is Serving 2'],
  },
  {
    when: 'some have loaded it at the deadline, and the strategy requires all',
    view: view([first, validated], partly, { ...ALL, now: DEADLINE }),
    steps: ['dryRun 2', 'enforce 1'],
  },
  {
    when: 'none has loaded it at the deadline',
    view: view([first, validated], both, { now: DEADLINE }),
    steps: ['dryRun 2', 'enforce 1'],
  },
  {
    when: 'no replica can load a new policy',
    view: view([revision(1, 'Validated')], [replica('a', { 1: 'Failed' })]),
    steps: ['uncover'],
    wakeAt: DEADLINE,
  },
  {
    when: 'the last replica is removed while it is loaded',
    view: view([first, validated], [], { now: DEADLINE }),
    steps: ['enforce 1'],
  },
  // Serving.
  {
    when: 'one replica has switched: the previous revision is retired, its requests stay covered',
    view: view([first, second], [replica('a', { 2: 'Serving' }), replica('b', { 1: 'Serving', 2: 'Staged' })]),
    steps: ['1 is Retired Replaced'],
    wakeAt: DEADLINE,
  },
  {
    when: 'all have switched',
    view: view([retired, second], [replica('a', { 2: 'Serving' }), replica('b', { 2: 'Serving' })]),
    steps: ['enforce 2'],
  },
  {
    when: 'one has switched, and the other one cannot',
    view: view([retired, second], [replica('a', { 2: 'Serving' }), replica('b', { 1: 'Serving', 2: 'Failed' })]),
    steps: ['enforce 2'],
    wakeAt: DEADLINE,
  },
  {
    when: 'one has not switched at the deadline',
    view: view([retired, second], [replica('a', { 2: 'Serving' }), replica('b', { 1: 'Serving' })], { now: DEADLINE }),
    steps: ['enforce 2'],
  },
  {
    when: 'a new policy serves on one of two replicas: it is not covered yet',
    view: view([first], [replica('a', { 1: 'Serving' }), replica('b', { 1: 'Staged' })], { isCovered: false }),
    steps: [],
    wakeAt: DEADLINE,
  },
  { when: 'it has settled', view: view([first], both, { phase: 'Active' }), steps: ['enforce 1'] },
  {
    when: 'it has settled, and the replicas are not known yet',
    view: view([first], undefined),
    steps: [],
    wakeAt: DEADLINE,
  },
  {
    when: 'two leaders made two serve: the higher order wins, then the higher number',
    view: view([revision(1, 'Serving', { order: 2 }), second], both),
    steps: ['1 is Retired Replaced'],
    wakeAt: DEADLINE,
  },
  {
    when: 'a pin returned to an older one, and the newer one still reads Serving: the order decides',
    view: view([revision(1, 'Serving', { order: 3 }), second], both, { pin: 1 }),
    steps: ['2 is Retired Replaced', 'enforce 1'],
  },
  {
    when: 'a replica serves it by an old order, before two pending switches',
    view: view(
      [revision(1, 'Serving', { order: 3 }), revision(2, 'Retired')],
      [replica('a', { 1: { state: 'Serving', order: 1 } }), replica('b', { 1: { state: 'Serving', order: 3 } })],
      { pin: 1 },
    ),
    steps: [],
    wakeAt: DEADLINE,
  },
  // A newer revision exists.
  {
    when: 'a newer spec came before it served',
    view: view([first, validated, revision(3, 'Candidate')], both),
    steps: ['2 is Superseded Superseded', 'try 3', 'enforce 1'],
  },
  { when: 'the newest failed', view: view([first, failed], both), steps: ['enforce 1'] },
  {
    when: 'the newest failed, and degraded policies reject',
    view: view([first, failed], both, REJECT),
    steps: ['1 is Retired DegradedRejected', 'enforce 1'],
  },
  {
    when: 'the serving revision is retired because the newest failed',
    view: view([retired, failed], both, REJECT),
    steps: ['enforce 1'],
  },
  {
    when: 'degraded policies no longer reject',
    view: view([retired, failed], both),
    steps: ['1 is Validated', 'enforce 1'],
  },
  // Pins.
  {
    when: 'a pin returns to an older revision',
    view: view([retired, second], [replica('a', { 2: 'Serving' })], { pin: 1 }),
    steps: ['1 is Validated', 'enforce 2'],
  },
  {
    when: 'a pin selects a revision that was never validated',
    view: view([revision(1, 'Superseded'), second], [replica('a', { 2: 'Serving' })], { pin: 1 }),
    steps: ['1 is Candidate', 'enforce 2'],
  },
  {
    when: 'a pin returns to the revision that was just replaced: it is loaded again before it serves',
    view: view([first, second], both, { pin: 1 }),
    steps: ['1 is Retired Replaced'],
    wakeAt: DEADLINE,
  },
  {
    when: 'the newest waits for the end of a pin',
    view: view([first, validated], both, { pin: 1 }),
    steps: ['2 is Candidate Pinned', 'enforce 1'],
  },
  {
    when: 'it already waits',
    view: view([first, revision(2, 'Candidate', { reason: REASONS.pinned })], both, { pin: 1 }),
    steps: ['enforce 1'],
  },
  {
    when: 'the pin is removed',
    view: view([first, revision(2, 'Candidate', { reason: REASONS.pinned })], both),
    steps: ['try 2', 'enforce 1'],
  },
  { when: 'a pin names a revision that does not exist', view: view([first], both, { pin: 7 }), steps: ['enforce 1'] },
  {
    when: 'a pin names a failed revision',
    view: view([revision(1, 'Failed'), second], [replica('a', { 2: 'Serving' })], { pin: 1 }),
    steps: ['enforce 2'],
  },
  {
    when: 'a pin names a failed revision, and degraded policies reject: only the newest counts',
    view: view([revision(1, 'Failed'), second], [replica('a', { 2: 'Serving' })], { pin: 1, ...REJECT }),
    steps: ['enforce 2'],
  },
  // History.
  {
    when: 'there are more revisions than the history limit',
    view: view([...retiredOnes(1, 2, 3), revision(4, 'Serving')], [replica('a', { 4: 'Serving' })], {
      settings: { ...DEFAULT_ROLLOUT_SETTINGS, historyLimit: 1 },
    }),
    steps: ['enforce 4', 'delete 1 2'],
  },
  {
    when: 'a new pin selects a revision beyond the history limit',
    view: view([...retiredOnes(1, 2), revision(3, 'Serving')], [replica('a', { 3: 'Serving' })], {
      pin: 1,
      settings: { ...DEFAULT_ROLLOUT_SETTINGS, historyLimit: 0 },
    }),
    steps: ['1 is Validated', 'enforce 3', 'delete 2'],
  },
  {
    when: 'revisions that never served are deleted first',
    view: view([...retiredOnes(1), revision(2, 'Failed'), revision(3, 'Serving')], [replica('a', { 3: 'Serving' })], {
      settings: { ...DEFAULT_ROLLOUT_SETTINGS, historyLimit: 1 },
    }),
    steps: ['enforce 3', 'delete 2'],
  },
  {
    when: 'only pinned, newest and serving revisions are kept',
    view: view(
      [...retiredOnes(1, 2, 3), revision(4, 'Serving'), revision(5, 'Failed')],
      [replica('a', { 4: 'Serving' }), replica('b', { 3: 'Serving' })],
      { pin: 4, settings: { ...DEFAULT_ROLLOUT_SETTINGS, historyLimit: 0 } },
    ),
    steps: ['delete 1 2'],
    wakeAt: DEADLINE,
  },
];

describe('the plan of a rollout', () => {
  for (const { when, view: scene, steps, wakeAt } of CASES) {
    it(`is ${steps.join(', ') || 'empty'}, when ${when}`, () => {
      const plan = planRollout(scene);
      assert.deepEqual([plan.steps.map(inShort), plan.wakeAt], [steps, wakeAt]);
    });
  }
});
