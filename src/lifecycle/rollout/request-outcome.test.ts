import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ReplicaAnswers } from '../../control/index.ts';
import { requestOutcome } from './request-outcome.ts';
import { DEFAULT_ROLLOUT_SETTINGS, type ReplicaFacts } from '../../rollout/index.ts';
import type { AdmissionRolloutView } from './admission-rollout-view.ts';
import { replica, revision, spec, view } from './testing/rollout-scene.ts';
import { COVERED } from './webhook-state.ts';

const IGNORE = spec('1', { failurePolicy: 'Ignore' });
const MONITOR = spec('1', { mode: 'monitor' });
const first = revision(1, 'Serving');
const FAILED = { state: 'Failed', reason: 'FetchFailed', message: 'no route' } as const;
/** The newest revision cannot be fetched. */
const waiting = (snapshot = IGNORE): ReturnType<typeof revision> =>
  revision(2, 'Candidate', { reason: 'FetchFailed', message: 'no route', snapshot });

/** A replica that says what it answers by each revision. */
function says(name: string, answers: Readonly<Record<number, ReplicaAnswers | undefined>>): ReplicaFacts {
  const reports = Object.entries(answers).map(([number, answer]) => {
    return [number, { ...FAILED, state: answer === 'Verdict' ? 'Serving' : 'Failed', answers: answer }];
  });
  return replica(name, Object.fromEntries(reports) as Parameters<typeof replica>[1]);
}

function outcome(scene: AdmissionRolloutView): string {
  const { status, reason, message } = requestOutcome(scene);
  return `${status} ${reason}: ${message}`;
}

describe('what requests of a policy get', () => {
  it('is what replicas say, not what is declared', () => {
    assert.equal(
      outcome(view([first, waiting()], [says('a', { 1: 'Fail' }), says('b', { 1: 'Fail' })])),
      'True FailurePolicy: requests are rejected (failurePolicy Fail of revision 1)',
    );
    const ignoring = revision(1, 'Serving', { snapshot: IGNORE });
    assert.equal(
      outcome(view([ignoring, waiting(spec('2'))], [says('a', { 1: 'Ignore' })])),
      'True FailurePolicy: requests are admitted with a warning (failurePolicy Ignore of revision 1)',
    );
    const monitored = revision(1, 'Serving', { snapshot: MONITOR });
    assert.equal(
      outcome(view([monitored, waiting(spec('2'))], [says('a', { 1: 'Ignore' })])),
      'True FailurePolicy: requests are admitted (mode monitor of revision 1)',
    );
  });

  it('says that a revision in monitor mode rejects none', () => {
    const monitored = revision(1, 'Serving', { snapshot: MONITOR });
    assert.equal(
      outcome(view([monitored], [says('a', { 1: 'Verdict' })])),
      'True Serving: revision 1 answers requests, and rejects none (mode monitor)',
    );
  });

  it('is what the webhook says that was read back, where no replica is left', () => {
    const left = (failurePolicy: 'Fail' | 'Ignore', snapshot = IGNORE): string =>
      outcome(view([first, waiting(snapshot)], [], { webhook: COVERED[failurePolicy] }));
    assert.equal(left('Fail'), 'True FailurePolicy: requests are rejected (failurePolicy Fail of revision 1)');
    assert.equal(left('Ignore'), 'True FailurePolicy: requests are admitted (failurePolicy Ignore of revision 1)');
  });

  it('is unknown, and names both, where replicas answer differently', () => {
    assert.equal(
      outcome(view([first], [says('a', { 1: 'Verdict' }), says('b', { 1: 'Fail' })])),
      'Unknown AnswersDiffer: revision 1 answers requests (a); requests are rejected (failurePolicy Fail) (b)',
    );
    assert.equal(
      outcome(
        view(
          [revision(1, 'Retired'), revision(2, 'Serving')],
          [says('a', { 1: 'Verdict' }), says('b', { 2: 'Verdict' })],
        ),
      ),
      'True Serving: revision 1 answers requests (a); revision 2 answers requests (b)',
    );
  });

  it('is unknown where a replica is not connected: API servers may still reach it', () => {
    const lost = replica('b', {}, 'lost');
    const gone = { ...lost, isUnready: true };
    assert.equal(
      outcome(view([first], [says('a', { 1: 'Verdict' }), gone])),
      'True Serving: revision 1 answers requests',
      'a replica whose pod is not ready gets no requests',
    );
    assert.equal(
      outcome(view([first], [gone])),
      'True FailurePolicy: requests are rejected (failurePolicy Fail)',
      'the API server reaches none',
    );
    assert.equal(
      outcome(view([first], [says('a', { 1: 'Verdict' }), lost])),
      'Unknown ReplicaUnreachable: revision 1 answers requests (a); the answer of b is not known, and where API servers do not reach a replica, requests are rejected (failurePolicy Fail)',
    );
    assert.match(
      outcome(view([first], [lost])),
      /^Unknown ReplicaUnreachable: the answer of b is not known, and where API servers/,
    );
  });

  it('is unknown where a replica does not say what it answers', () => {
    const old = says('a', { 1: undefined });
    const scene = view([first], []);
    assert.match(outcome({ ...scene, replicas: [old] }), /^Unknown AnswersUnknown: the answer of a is not known/);
  });

  it('does not ask a replica that API servers do not ask yet', () => {
    assert.equal(
      outcome(view([first], [says('a', { 1: 'Verdict' }), says('b', { 1: 'NotReady' })])),
      'True Serving: revision 1 answers requests',
    );
    assert.equal(
      outcome(view([first], [says('a', { 1: 'Verdict' }), replica('b', {}, 'connecting')])),
      'True Serving: revision 1 answers requests',
      'nor a replica that is new',
    );
    assert.match(outcome(view([first], [replica('b', {}, 'connecting')])), /^Unknown AnswersUnknown: /);
    assert.equal(
      outcome(view([first], [says('a', { 1: 'NotReady' })])),
      'True FailurePolicy: requests are rejected (failurePolicy Fail)',
    );
  });

  it('is admission without the policy where no replica evaluates it, or no request is sent', () => {
    assert.equal(
      outcome(view([first], [says('a', { 1: 'Nothing' })])),
      'False NotEvaluated: requests are admitted without the policy, because no replica evaluates it',
    );
    assert.match(outcome(view([first], [says('a', { 1: 'Fail' })], { isCovered: false })), /^False Switching: /);
    const settings = { ...DEFAULT_ROLLOUT_SETTINGS, degraded: 'Ignore' } as const;
    const ignored = view([first], [says('a', { 1: 'Fail' })], { isCovered: false, settings });
    assert.match(outcome(ignored), /^False DegradedIgnored: /);
  });
});
