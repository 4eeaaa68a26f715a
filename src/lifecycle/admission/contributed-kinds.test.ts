import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../cluster/index.ts';
import { type JsonObject, POLICIES } from '../../resources/index.ts';
import type { ContributedFindings, ContributedKinds } from './contributed-kinds.ts';
import type { GuardedKinds, GuardedWrite } from './guarded-kinds.ts';
import { ownKindsConfiguration } from './own-kinds-configuration.ts';
import type { OwnKindsReview } from './own-kinds-review.ts';
import { OwnKindsRules, type RulesVerdict } from './own-kinds-rules.ts';
import { CONTROLLER, review } from './testing/validation-cases.ts';

const object = (spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  metadata: { name: 'one', ...metadata },
  spec,
});

/** Refuses `spec.bad`, and warns of `spec.odd`. */
const contributed: ContributedKinds = {
  name: 'governance',
  kinds: [POLICIES],
  review: (_kind, { spec }): ContributedFindings => {
    const has = (name: string): boolean => JSON.stringify(spec).includes(name);
    return {
      errors: has('bad') ? [{ code: 'rule', reason: 'FieldValueInvalid', field: 'spec.bad', message: 'Bad' }] : [],
      warnings: has('odd') ? [{ code: 'rule', field: 'spec.odd', text: 'odd\nindeed' }] : [],
    };
  },
};

function verdict(next: JsonObject, old?: JsonObject, more: Partial<OwnKindsReview> = {}): RulesVerdict {
  const rules = new OwnKindsRules({ controllerUser: CONTROLLER, contributed: [contributed] });
  const { group, kind } = POLICIES;
  return rules.validate({ ...review('cap', next, old), group, kind, ...more });
}

describe('kinds of other controllers', () => {
  it('are reviewed by the rules that come with them', () => {
    const { error, warnings } = verdict(object({ bad: 1, odd: 1 }));
    assert.match(
      error?.message ?? '',
      /Policy\.policy\.open-cluster-management\.io "one" is invalid: spec\.bad: Bad \[rule\]/,
    );
    assert.deepEqual(warnings, ['spec.odd: odd indeed [rule]']);
  });

  it('may keep an error that they had', () => {
    const { error, warnings } = verdict(object({ bad: 1, a: 2 }), object({ bad: 1 }));
    assert.equal(error, undefined);
    assert.deepEqual(warnings, ['spec.bad: Bad [rule] [wrong-before]']);
    assert.ok(verdict(object({ bad: 1 }), object({})).error);
  });

  const allowed: readonly (readonly [what: string, verdict: RulesVerdict])[] = [
    ['a change of labels', verdict(object({ bad: 1 }, { labels: {} }), object({ bad: 1 }))],
    ['an object that is being deleted', verdict(object({ bad: 1 }), object({}, { deletionTimestamp: 'now' }))],
    ['a status', verdict(object({ bad: 1 }), object({}), { subresource: 'status' })],
    ['a write of the controller', verdict(object({ bad: 1 }), undefined, { username: CONTROLLER })],
    ['another kind of the group', verdict(object({ bad: 1 }), undefined, { kind: 'PlacementBinding' })],
  ];
  for (const [what, result] of allowed) {
    it(`are not reviewed for ${what}`, () => assert.deepEqual(result, { warnings: [] }));
  }

  it('have a webhook that fails open', () => {
    const target = { url: 'https://127.0.0.1:1', ca: '' };
    const { webhooks: own = [] } = ownKindsConfiguration(target, CONTROLLER);
    const { webhooks = [] } = ownKindsConfiguration(target, CONTROLLER, [contributed]);
    const [webhook, ...others] = webhooks.slice(own.length);
    const { name, failurePolicy, rules } = webhook as { name: string; failurePolicy: string; rules: readonly object[] };
    assert.deepEqual([name, failurePolicy, others], ['governance.own-kinds.portcullis.dev', 'Ignore', []]);
    assert.deepEqual(rules, [
      {
        apiGroups: ['policy.open-cluster-management.io'],
        apiVersions: ['v1'],
        resources: ['policies'],
        operations: ['CREATE', 'UPDATE'],
        scope: '*',
      },
    ]);
  });

  it('have a webhook that fails closed, and covers statuses, where it decides who may write', () => {
    const target = { url: 'https://127.0.0.1:1', ca: '' };
    const guarded: GuardedKinds = { name: 'reports', kinds: [POLICIES], refusal: () => undefined };
    const { webhooks: own = [] } = ownKindsConfiguration(target, CONTROLLER);
    const { webhooks = [] } = ownKindsConfiguration(target, CONTROLLER, [], [guarded]);
    const [webhook] = webhooks.slice(own.length);
    const { name, failurePolicy, rules } = webhook as { name: string; failurePolicy: string; rules: readonly object[] };
    assert.deepEqual([name, failurePolicy], ['reports.own-kinds.portcullis.dev', 'Fail']);
    assert.match(JSON.stringify(rules), /"resources":\["policies","policies\/status"\]/);
  });

  it('refuse what a guard refuses, but nothing of the controller', () => {
    const refusal = ({ username, isStatus }: GuardedWrite): ApiError =>
      new ApiError(403, 'Forbidden', `${username} ${isStatus ? 'status' : 'object'}`);
    const rules = new OwnKindsRules({
      controllerUser: CONTROLLER,
      guarded: [{ name: 'reports', kinds: [POLICIES], refusal }],
    });
    const { group, kind } = POLICIES;
    const write = { ...review('cap', object({}), object({ a: 1 })), group, kind, username: 'somebody' };
    assert.equal(rules.validate(write).error?.message, 'somebody object');
    assert.equal(rules.validate({ ...write, subresource: 'status' }).error?.message, 'somebody status');
    assert.equal(rules.validate({ ...write, username: CONTROLLER }).error, undefined);
    assert.equal(rules.validate({ ...write, operation: 'DELETE' }).error, undefined);
  });
});
