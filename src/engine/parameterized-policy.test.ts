// Policies with parameters, evaluated as by their own route.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { compileModule } from '../wasm/index.ts';
import { EngineError } from './values/errors.ts';
import { checkSettings, evaluate, readReview } from './evaluate.ts';
import type { PolicyEvaluationResult } from './evaluate.ts';
import type { JsonObject } from './values/json-text.ts';
import { Evaluator } from './evaluator.ts';
import { createGuest } from './guests/index.ts';
import { createPolicy } from './loaded-policy.ts';
import type { LoadedPolicy } from './loaded-policy.ts';
import { type ObjectLookup, UnknownObject } from './review/object-lookup.ts';
import { parsePolicies } from './definition/policies-file.ts';
import { bytes, podReview } from './testing/reviews.ts';
import { ScriptedGuest } from './testing/scripted-guest.ts';

const PARAMETERS = `
    from: {resource: {apiVersion: example.com/v1, kind: ToolProfile, name: profile}}
    overridable: [uid]
    settingsExpression: "{'uid': params.spec.uid}"`;
const POLICY = `id:\n  module: m.wasm\n  settings: {mode: strict}\n  parameters:${PARAMETERS}`;
const NEGATED = `
id:
  expression: "!first()"
  message: not the group
  policies:
    first:
      module: m.wasm
      parameters:${PARAMETERS.replaceAll('\n', '\n    ')}
`;

/** A uid whose validation does not end. */
const ENDLESS = 666;

/** Denies, and says with which settings. Uids must be positive. */
function guest(): ScriptedGuest {
  return new ScriptedGuest(({ settings }) => ({ accepted: false, message: JSON.stringify(settings) }), {
    settings: (settings) => {
      const { uid = -1 } = settings as { uid?: number };
      if (uid === ENDLESS) {
        throw new EngineError('guest-timeout', 'out of fuel');
      }
      return uid > 0 ? { valid: true } : { valid: false, message: `uid is ${uid}` };
    },
  });
}

function load(yaml: string): { readonly policy: LoadedPolicy; readonly guest: ScriptedGuest } {
  const { policies, problems } = parsePolicies(yaml, 'policies.yml');
  assert.deepEqual(problems, []);
  const scripted = guest();
  const port = { request: () => assert.fail('expected no host call') };
  return { policy: createPolicy(policies[0]!, () => scripted, { port, log: () => {} }), guest: scripted };
}

function run(policy: LoadedPolicy, objects: ObjectLookup | undefined): PolicyEvaluationResult {
  const review = readReview('validate', bytes(podReview()));
  return evaluate(policy, review, { route: 'validate', ...(objects && { objects }) });
}

const withProfile = (spec: JsonObject): ObjectLookup => ({
  find: ({ kind, namespace, name }) =>
    `${kind} ${namespace}/${name}` === 'ToolProfile default/profile'
      ? { state: 'found', object: { spec } }
      : { state: 'absent' },
});

describe('a policy with parameters', () => {
  it('is evaluated with the settings of the namespace of the request', () => {
    assert.equal(run(load(POLICY).policy, withProfile({ uid: 5 })).verdict.message, '{"mode":"strict","uid":5}');
  });

  it('denies requests with invalid parameters, and does not run', () => {
    const { policy, guest: scripted } = load(POLICY);
    const { verdict, observation } = run(policy, withProfile({ uid: -2 }));
    assert.equal(verdict.allowed, false);
    assert.equal(verdict.message, 'the parameters of ToolProfile default/profile are invalid: uid is -2');
    assert.equal(observation.outcome, 'failed');
    assert.equal(scripted.calls, 0);
  });

  it('admits requests without parameters when notFound is Allow', () => {
    const { policy, guest: scripted } = load(`${POLICY}\n    notFound: Allow`);
    assert.equal(run(policy, { find: () => ({ state: 'absent' }) }).verdict.allowed, true);
    assert.equal(scripted.calls, 0);
  });

  it('denies requests without a cluster', () => {
    const { verdict } = run(load(`${POLICY}\n    notFound: Allow`).policy, undefined);
    assert.equal(verdict.allowed, false);
    assert.match(verdict.message ?? '', /cannot be read: no cluster is configured/);
  });

  it('gives no verdict while its parameters are unknown', () => {
    assert.throws(() => run(load(POLICY).policy, { find: () => ({ state: 'unknown' }) }), UnknownObject);
  });

  it('may have settings that are incomplete without parameters, unless they are the defaults', () => {
    assert.deepEqual(checkSettings(load(POLICY).policy), { valid: true });
    assert.deepEqual(checkSettings(load(`${POLICY}\n    notFound: UseDefaults`).policy), {
      valid: false,
      message: 'uid is -1',
    });
  });

  it('refuses settings that it never validates, once and for their namespace only', () => {
    const { policy, guest: scripted } = load(POLICY);
    for (let request = 0; request < 3; request += 1) {
      const { verdict, observation } = run(policy, withProfile({ uid: ENDLESS }));
      assert.match(verdict.message ?? '', /profile are invalid: .* in time: expected at most 1 s$/);
      // A timeout would make the policy a slow one.
      assert.equal(observation.outcome, 'failed');
    }
    assert.equal(scripted.validations, 1);
    assert.equal(run(policy, withProfile({ uid: 5 })).verdict.message, '{"mode":"strict","uid":5}');
  });

  it('refuses settings of a module that validates them for ever, by its fuel', () => {
    const module = readFileSync(new URL('../../test/fixtures/guests/loop-in-settings.wasm', import.meta.url));
    const compiled = compileModule(module, { memoryLimitBytes: 1024 * 1024, isolation: 'restore' });
    const { policies } = parsePolicies(POLICY, 'policies.yml');
    const port = { request: () => assert.fail('expected no host call') };
    const guestOf = () => createGuest({ compiled, mode: 'kubewarden-wapc' });
    const policy = createPolicy(policies[0]!, guestOf, { port, log: () => {}, defaultTimeoutSeconds: 0.1 });
    const { verdict, observation } = run(policy, withProfile({ uid: 5 }));
    assert.match(verdict.message ?? '', /are invalid: .* in time: expected at most 0\.05 s$/);
    assert.equal(observation.outcome, 'failed');
  });

  it('does not refuse settings for good because a request left too little time for them', () => {
    const { policy, guest: scripted } = load(POLICY);
    const review = readReview('validate', bytes(podReview()));
    const objects = withProfile({ uid: ENDLESS });
    const { outcome } = new Evaluator(policy.options).judge(policy, review, { objects, leftMs: () => 100 });
    assert.equal(outcome, 'timeout');
    run(policy, objects);
    assert.equal(scripted.validations, 2);
  });

  it('has an expression that compiles', () => {
    const verdict = checkSettings(load(POLICY.replace("'uid':", "'mode':")).policy);
    assert.equal(verdict.valid, false);
    assert.match(verdict.message, /^parameters.settingsExpression: the key "mode" is not overridable/);
  });
});

describe('a member of a group with parameters', () => {
  it('is evaluated with the settings of the namespace', () => {
    assert.equal(run(load(NEGATED).policy, withProfile({ uid: 5 })).verdict.allowed, true);
  });

  it('gives no verdict without them, so that a negation does not admit', () => {
    const { verdict } = run(load(NEGATED).policy, { find: () => ({ state: 'absent' }) });
    assert.equal(verdict.allowed, false);
    assert.equal(verdict.code, 500);
    assert.equal(verdict.causes?.[0]?.message, 'there are no parameters: ToolProfile default/profile does not exist');
  });
});

describe('a policy whose parameters are gone with a namespace that is being deleted', () => {
  const deletion = {
    operation: 'DELETE',
    object: null,
    oldObject: { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'nginx' } },
  };
  const ending = (
    profile: JsonObject | undefined,
    metadata: JsonObject = { deletionTimestamp: 'now' },
  ): ObjectLookup => ({
    find: ({ kind }) => {
      const object = kind === 'Namespace' ? { metadata } : profile;
      return object === undefined ? { state: 'absent' } : { state: 'found', object };
    },
  });
  const judged = (yaml: string, objects: ObjectLookup, request: JsonObject = deletion): boolean =>
    evaluate(load(yaml).policy, readReview('validate', bytes(podReview(request))), { route: 'validate', objects })
      .verdict.allowed;

  it('refuses no deletion for them, whether they are missing or invalid', () => {
    assert.equal(judged(POLICY, ending(undefined)), true);
    assert.equal(judged(POLICY, ending({ spec: { uid: -2 } })), true);
    assert.equal(judged(NEGATED, ending(undefined)), true);
  });

  it('refuses them while the namespace lives, and all else', () => {
    assert.equal(judged(POLICY, ending(undefined, {})), false);
    assert.equal(judged(NEGATED, ending(undefined, {})), false);
    assert.equal(judged(POLICY, ending(undefined), {}), false);
  });

  it('refuses them where the parameters are in another namespace', () => {
    const elsewhere = POLICY.replace('name: profile', 'name: profile, namespace: shared');
    assert.equal(judged(elsewhere, ending(undefined)), false);
  });

  it('still has its own verdict', () => {
    assert.equal(judged(POLICY, ending({ spec: { uid: 5 } })), false);
    // The member that has no parameters would deny: another member may, too.
    const both =
      NEGATED.replace('"!first()"', '"first() && second()"') + '    second: {module: m.wasm, settings: {uid: 1}}\n';
    assert.equal(judged(both, ending(undefined)), false);
    const either = both.replace('&&', '||');
    assert.equal(judged(either, ending(undefined)), true);
  });
});

describe('parameters of a policies file', () => {
  const cases: readonly [title: string, parameters: string, field: string, message: RegExp][] = [
    ['no source', '{overridable: [a], settingsExpression: "{}"}', 'parameters', /expected the key "from"/],
    [
      'two sources',
      '{from: {namespace: {labels: [a]}, resource: {apiVersion: v1, kind: ConfigMap, name: a}}, overridable: [a], settingsExpression: "{}"}',
      'parameters.from',
      /got both/,
    ],
    ['an empty source', '{from: {}, overridable: [a], settingsExpression: "{}"}', 'parameters.from', /got neither/],
    [
      'no keys',
      '{from: {namespace: {}}, overridable: [a], settingsExpression: "{}"}',
      'parameters.from.namespace',
      /keys of annotations or labels/,
    ],
    [
      'an empty list of keys',
      '{from: {namespace: {labels: []}}, overridable: [a], settingsExpression: "{}"}',
      'parameters.from.namespace.labels',
      /expected 1 to 32 keys/,
    ],
    [
      'nothing overridable',
      '{from: {namespace: {labels: [a]}}, settingsExpression: "{}"}',
      'parameters',
      /expected the key "overridable"/,
    ],
    [
      'an unknown fallback',
      '{from: {namespace: {labels: [a]}}, notFound: Ignore, overridable: [a], settingsExpression: "{}"}',
      'parameters.notFound',
      /Deny or Allow or UseDefaults/,
    ],
    [
      'a misspelt key',
      '{form: {}, from: {namespace: {labels: [a]}}, overridable: [a], settingsExpression: "{}"}',
      'parameters.form',
      /did you mean "from"/,
    ],
  ];
  for (const [title, parameters, field, message] of cases) {
    it(`are refused with ${title}`, () => {
      const { problems } = parsePolicies(`id: {module: m.wasm, parameters: ${parameters}}`, 'policies.yml');
      assert.deepEqual(
        problems.map((one) => one.field),
        [field],
        JSON.stringify(problems),
      );
      assert.match(problems[0]?.message ?? '', message);
    });
  }
});
