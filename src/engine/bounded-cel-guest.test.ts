import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Dice, RandomExpressions } from '../cel/testing/index.ts';
import type { CallContext } from '../wasm/index.ts';
import { BoundedCelGuest } from './bounded-cel-guest.ts';
import { createBoundedGuest } from './builtin-guest.ts';
import { CelGuest } from './cel-guest.ts';
import { EngineError } from './errors.ts';
import type { JsonObject } from './json-text.ts';
import { podReview } from './testing/reviews.ts';
import type { GuestVerdict } from './verdict.ts';

const ROUNDS = 3_000;
const CONTEXT: CallContext = {
  limits: { fuel: Infinity, answerBytes: Infinity },
  log: () => undefined,
  hostCall: () => assert.fail('nobody is asked'),
};
const whole = new CelGuest();
const bounded = new BoundedCelGuest();

function requestOf(object: object = { items: [1], name: 'a' }): Buffer {
  const { request } = podReview({ object } as JsonObject);
  const text = JSON.stringify(request, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
  return Buffer.from(text.replaceAll(/"(\d+)n"/gu, '$1'));
}

/** Undefined: it says that it does not know. */
function verdictOf(settings: object, requestJson = requestOf(), isRaw = false): GuestVerdict | undefined {
  try {
    return bounded.validate({ requestJson, settingsJson: JSON.stringify(settings), isRaw });
  } catch (error) {
    assert.ok(error instanceof EngineError && error.code === 'guest-error');
    return undefined;
  }
}

function wholeVerdictOf(settings: object, requestJson = requestOf()): GuestVerdict {
  return whole.validate({ requestJson, settingsJson: JSON.stringify(settings), isRaw: false }, CONTEXT);
}

describe('builtin:cel with a bound', () => {
  it('gives the verdicts of builtin:cel', () => {
    const described = { expression: 'false', message: ' told so ', reason: 'Forbidden' };
    for (const settings of [
      { validations: [{ expression: 'object.items.size() == 1' }] },
      { validations: [{ expression: ' object.items == [2] ' }, described, { expression: 'true' }, described] },
      { failurePolicy: 'Ignore', validations: [{ expression: "request.operation == 'DELETE'" }] },
      { variables: [{ name: 'n', expression: 'object.name' }], validations: [{ expression: "variables.n == 'a'" }] },
      { validations: [{ expression: 'oldObject == null', messageExpression: "'not ' + object.name" }] },
    ]) {
      assert.equal(bounded.takes(settings as JsonObject), true);
      assert.deepEqual(verdictOf(settings), wholeVerdictOf(settings));
    }
  });

  it('gives none that it does not know', () => {
    for (const settings of [
      { validations: [{ expression: 'object.absent == 1' }] },
      { failurePolicy: 'Ignore', validations: [{ expression: 'object.absent == 1' }] },
      { validations: [{ expression: 'false' }, { expression: 'object.absent == 1' }] },
      { validations: [{ expression: 'false', messageExpression: "'not ' + object.name" }] },
      { validations: [{ expression: 'object.items[0]' }] },
      { validations: [{ expression: 'true', messageExpression: "'x'" }, { expression: "object.name == 'b'" }] },
    ]) {
      assert.equal(bounded.takes(settings as JsonObject), true);
      assert.equal(verdictOf(settings), undefined);
    }
    assert.equal(verdictOf({ validations: [{ expression: 'true' }] }, requestOf(), true), undefined);
    assert.equal(verdictOf({ validations: [{ expression: 'true' }] }, Buffer.from('[]')), undefined);
  });

  it('takes no settings by which something else is to be done', () => {
    const validations = [{ expression: 'true' }];
    const message = { expression: 'true', messageExpression: "'a'" };
    const variables = Array.from({ length: 8 }, (_, index) => ({ name: `n${index}`, expression: '1' }));
    for (const settings of [
      { validations: [{ expression: "object.name.matches('a')" }] },
      { validations: [{ expression: "authorizer.group('').resource('pods').check('get').allowed()" }] },
      { validations: [{ expression: 'namespaceObject == null' }] },
      { validations, matchConditions: [{ name: 'c', expression: 'true' }] },
      { validations, auditAnnotations: [{ key: 'k', valueExpression: "'v'" }] },
      { validations, matchConstraints: { resourceRules: [] } },
      { validations, variables: [{ name: 'n', expression: "object.name.matches('a')" }] },
      { validations, paramKind: { apiVersion: 'v1', kind: 'ConfigMap' }, paramRef: { name: 'p' } },
      { validations: [message], variables },
      { mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: '[]' } }] },
      { validations, unknown: true },
      { validations: [{ expression: "'namespaceObject' != object.name" }] },
      { validations: [{ expression: 'true', messageExpression: "'namespaceObject'" }] },
      {},
    ]) {
      assert.equal(bounded.takes(settings as JsonObject), false, JSON.stringify(settings));
      assert.equal(verdictOf(settings), undefined);
    }
    assert.equal(bounded.takes({ validations: [message], variables: variables.slice(1) }), true);
  });

  it('gives the verdicts of builtin:cel on anything, or none', () => {
    const random = new RandomExpressions(3);
    const dice = new Dice(3);
    let same = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const validations = Array.from({ length: 1 + dice.below(3) }, () => ({
        expression: random.condition(3),
        ...(dice.below(2) ? { message: dice.one(['no', 'never', ' ']) } : {}),
        ...(dice.below(2) ? { reason: dice.one(['Forbidden', 'Invalid', 'Unauthorized']) } : {}),
      }));
      const settings = { validations, variables: [{ name: 'one', expression: 'object.items' }] };
      const request = requestOf(random.object());
      if (whole.validateSettings(JSON.stringify(settings)).valid) {
        const verdict = verdictOf(settings, request);
        if (verdict !== undefined) {
          assert.deepEqual(verdict, wholeVerdictOf(settings, request), JSON.stringify(settings));
          same += 1;
        }
      }
    }
    assert.ok(same > ROUNDS / 20, `${same}`);
  });

  it('is what tenants get of it, as the Pod Security Standards are', () => {
    assert.ok(createBoundedGuest('cel') instanceof BoundedCelGuest);
    assert.equal(createBoundedGuest('pod-security').takes({}), true);
    assert.throws(() => createBoundedGuest('cel').validateSettings('{}', CONTEXT), EngineError);
  });
});
