import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EngineError } from './values/errors.ts';
import { checkSettings, evaluate, readReview } from './evaluate.ts';
import { FUEL_PER_SECOND } from './evaluator.ts';
import type { EvaluateOptions, PolicyEvaluationResult } from './evaluate.ts';
import type { HostPort, PolicyLogEntry } from './capabilities/host-port.ts';
import type { JsonObject } from './values/json-text.ts';
import { createFailedPolicy, createPolicy } from './loaded-policy.ts';
import type { LoadedPolicy, PolicyOptions } from './loaded-policy.ts';
import { parsePolicies } from './definition/policies-file.ts';
import { TIMEOUT_MESSAGE } from './verdict/verdict.ts';
import { reasonOf } from './testing/reason-of.ts';
import { bytes, podReview } from './testing/reviews.ts';
import { ScriptedGuest } from './testing/scripted-guest.ts';

const UID = '1299d386-525b-4032-98ae-1949f69f9cfc';
const NO_EXTRAS = { auditAnnotations: null, warnings: null };
const NO_PORT: HostPort = {
  request: () => {
    throw new Error('nothing is there');
  },
};

interface Fixture {
  readonly policy: LoadedPolicy;
  readonly log: PolicyLogEntry[];
}

/** Loads the first policy of a file; `guests` are its modules. */
function load(yaml: string, guests: Record<string, ScriptedGuest>, options: Partial<PolicyOptions> = {}): Fixture {
  const { policies, problems } = parsePolicies(yaml, 'policies.yml');
  assert.deepEqual(problems, []);
  const log: PolicyLogEntry[] = [];
  const policy = createPolicy(policies[0]!, (module) => guests[module] ?? assert.fail(module), {
    port: NO_PORT,
    log: (entry) => log.push(entry),
    ...options,
  });
  return { policy, log };
}

function single(answer: unknown, settings = ''): Fixture {
  const guest = new ScriptedGuest(() => {
    if (answer instanceof Error) {
      throw answer;
    }
    return answer;
  });
  return load(`id: {module: m.wasm${settings}}`, { 'm.wasm': guest });
}

function run(
  policy: LoadedPolicy,
  review: unknown = podReview(),
  { route = 'validate', ...options }: Partial<EvaluateOptions> = {},
): PolicyEvaluationResult {
  return evaluate(policy, readReview(route, bytes(review)), { route, ...options });
}

const MUTATED = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: 'nginx', labels: { a: 'b' } },
  spec: { containers: [{ name: 'a' }] },
};
const PATCH = '[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]';
const TRAP = new EngineError('guest-error', 'unreachable');
const LOOP = new EngineError('guest-timeout', 'out of fuel');
const NOT_ALLOWED_TO_MUTATE =
  'Request rejected by policy id. The policy attempted to mutate the request, but it is currently configured to not allow mutations.';

// The answers of Kubewarden's policy server, case by case, for single policies.
for (const [situation, answer, settings, expected] of [
  ['accepted', { accepted: true }, '', { allowed: true, ...NO_EXTRAS }],
  [
    'accepted with annotations and warnings',
    { accepted: true, audit_annotations: { k: 'v' }, warnings: ['w'] },
    '',
    { allowed: true, auditAnnotations: { k: 'v' }, warnings: ['w'] },
  ],
  [
    'denied',
    { accepted: false, message: 'no', code: 418 },
    '',
    { allowed: false, message: 'no', code: 418, ...NO_EXTRAS },
  ],
  ['denied without a reason', { accepted: false }, '', { allowed: false, ...NO_EXTRAS }],
  [
    'mutation',
    { accepted: true, mutated_object: MUTATED },
    ', allowedToMutate: true',
    { allowed: true, patch: PATCH, ...NO_EXTRAS },
  ],
  [
    'mutation that changes nothing: no patch',
    { accepted: true, mutated_object: (podReview().request as JsonObject).object },
    '',
    { allowed: true, ...NO_EXTRAS },
  ],
  [
    'guest error/trap',
    TRAP,
    '',
    { allowed: false, message: 'internal server error: unreachable', code: 500, ...NO_EXTRAS },
  ],
  [
    'guest garbage',
    'garbage',
    '',
    {
      allowed: false,
      message: "internal server error: the policy's answer cannot be read: expected JSON",
      code: 500,
      ...NO_EXTRAS,
    },
  ],
  ['timeout', LOOP, '', { allowed: false, message: TIMEOUT_MESSAGE, code: 500, ...NO_EXTRAS }],
  [
    'mutation not permitted',
    { accepted: true, mutated_object: MUTATED },
    '',
    { allowed: false, message: NOT_ALLOWED_TO_MUTATE, ...NO_EXTRAS },
  ],
  [
    'spec.message set',
    { accepted: false, message: 'no', code: 418, warnings: ['w'] },
    ', message: ask the team',
    {
      allowed: false,
      message: 'ask the team',
      causes: [{ message: 'no' }],
      code: 418,
      auditAnnotations: null,
      warnings: ['w'],
    },
  ],
  [
    'spec.message set, accepted',
    { accepted: true, message: 'fine' },
    ', message: ask the team',
    { allowed: true, message: 'fine', ...NO_EXTRAS },
  ],
  [
    'spec.message set, mutation not permitted',
    { accepted: true, mutated_object: MUTATED },
    ', message: ask the team',
    {
      allowed: false,
      message: 'ask the team',
      causes: [{ message: NOT_ALLOWED_TO_MUTATE }],
      ...NO_EXTRAS,
    },
  ],
  [
    'monitor mode',
    {
      accepted: false,
      message: 'no',
      code: 418,
      mutated_object: MUTATED,
      warnings: ['w'],
      audit_annotations: { k: 'v' },
    },
    ', policyMode: monitor, allowedToMutate: true, message: ask the team',
    { allowed: true, auditAnnotations: { k: 'v' }, warnings: ['w'] },
  ],
  ['monitor mode, timeout', LOOP, ', policyMode: monitor', { allowed: true, ...NO_EXTRAS }],
  [
    'timeout with failurePolicy Ignore',
    LOOP,
    ', failurePolicy: Ignore',
    {
      allowed: true,
      auditAnnotations: null,
      warnings: [`policy id gave no verdict and its failurePolicy is Ignore: ${TIMEOUT_MESSAGE}`],
    },
  ],
  [
    'trap with failurePolicy Ignore',
    TRAP,
    ', failurePolicy: Ignore',
    { allowed: false, message: 'internal server error: unreachable', code: 500, ...NO_EXTRAS },
  ],
] as const) {
  test(situation, () => {
    const { verdict } = run(single(answer, settings).policy);
    assert.deepEqual(verdict, { ...expected });
  });
}

test('mutation on DELETE', () => {
  const { verdict } = run(
    single({ accepted: true, mutated_object: MUTATED }, ', allowedToMutate: true').policy,
    podReview({ operation: 'DELETE', object: null }),
  );
  const message =
    'Incoming object is null, which happens only with DELETE operations, but the policy is attempting a mutation. This is not allowed';
  assert.deepEqual(verdict, { allowed: false, message, ...NO_EXTRAS });
});

test('/audit gives the policy’s own verdict, without mode, mutation rules and message', () => {
  const answer = { accepted: false, message: 'no', mutated_object: MUTATED };
  const { verdict } = run(single(answer, ', policyMode: monitor, message: other').policy, podReview(), {
    route: 'audit',
  });
  assert.deepEqual(verdict, {
    allowed: false,
    patch: PATCH,
    message: 'no',
    ...NO_EXTRAS,
  });
  const ignoring = run(single(LOOP, ', failurePolicy: Ignore').policy, podReview(), { route: 'audit' });
  assert.equal(ignoring.verdict.allowed, false);
});

test('/validate_raw takes any request, and compares mutations with the whole request', () => {
  const { policy } = single({ accepted: true, mutated_object: { user: 'b' } }, ', allowedToMutate: true');
  const { verdict, observation } = run(policy, { request: { uid: 'u', user: 'a' } }, { route: 'validate_raw' });
  const patch = [
    { op: 'remove', path: '/uid' },
    { op: 'replace', path: '/user', value: 'b' },
  ];
  assert.deepEqual(JSON.parse(verdict.patch ?? ''), patch);
  assert.deepEqual(observation, {
    policy: 'id',
    mode: 'protect',
    route: 'validate_raw',
    outcome: 'verdict',
    accepted: true,
    mutated: true,
  });
});

test('a policy that failed to load denies with the error, even in monitor mode; Ignore allows with a warning', () => {
  const options = { port: NO_PORT, log: () => undefined };
  const message = 'cannot load policy id: digest differs';
  for (const mode of ['protect', 'monitor'] as const) {
    const { verdict, observation } = run(createFailedPolicy({ id: 'id', message, mode }, options));
    assert.deepEqual(verdict, { allowed: false, message, code: 500, ...NO_EXTRAS });
    assert.equal(observation.outcome, 'not-initialized');
  }
  const { verdict } = run(createFailedPolicy({ id: 'id', message, failurePolicy: 'Ignore' }, options));
  assert.equal(verdict.allowed, true);
  assert.deepEqual(verdict.warnings, [`policy id gave no verdict and its failurePolicy is Ignore: ${message}`]);
});

test('requests of the always-accept namespace are allowed without an evaluation', () => {
  const guest = new ScriptedGuest(() => ({ accepted: false }));
  const { policy } = load('id: {module: m}', { m: guest }, { alwaysAcceptNamespace: 'portcullis' });
  const { verdict, observation } = run(policy, podReview({ namespace: 'portcullis' }));
  assert.deepEqual(verdict, { allowed: true, ...NO_EXTRAS });
  assert.equal(guest.calls, 0);
  assert.equal(observation.outcome, 'exempt');
  assert.equal(run(policy, podReview({ namespace: 'other' })).verdict.allowed, false);
  const failed = createFailedPolicy(
    { id: 'id', message: 'broken' },
    { port: NO_PORT, log: () => undefined, alwaysAcceptNamespace: 'portcullis' },
  );
  assert.equal(run(failed, podReview({ namespace: 'portcullis' })).verdict.allowed, true);
});

test('an observation contains the policy’s own verdict, with the labels of Kubewarden', () => {
  const { policy } = single({ accepted: false, message: 'no', code: 418 }, ', policyMode: monitor');
  assert.deepEqual(run(policy).observation, {
    policy: 'id',
    mode: 'monitor',
    route: 'validate',
    outcome: 'verdict',
    kind: 'Pod',
    operation: 'CREATE',
    namespace: 'default',
    accepted: false,
    mutated: false,
    errorCode: 418,
  });
});

test('an observation contains only valid names of a review', () => {
  const { policy } = single({ accepted: true });
  const kind = { group: '', version: 'v1', kind: 'K'.repeat(1_000) };
  const review = podReview({ kind, requestKind: kind, namespace: 'a b', operation: 'DESTROY' });
  const { observation } = run(policy, review);
  assert.deepEqual([observation.kind, observation.namespace, observation.operation], ['other', 'other', 'other']);
});

test('a guest gets request, settings and fuel by its timeout, and its run is reported', () => {
  const seen: unknown[] = [];
  const guest = new ScriptedGuest(({ request, settings, context }) => {
    seen.push((request as JsonObject).uid, settings, context.limits.fuel);
    return { accepted: true };
  });
  const announced = {
    onUnitStart: (id: string, timeoutMs: number, member: number) => seen.push([id, timeoutMs, member]),
    onUnitEnd: () => seen.push('left'),
  };
  run(load('id: {module: m, settings: {a: [1]}, timeoutEvalSeconds: 7}', { m: guest }).policy, podReview(), announced);
  assert.deepEqual(seen, [['id', 7_000, -1], UID, { a: [1] }, 7 * FUEL_PER_SECOND['kubewarden-wapc'], 'left']);
  seen.length = 0;
  run(load('id: {module: m}', { m: guest }, { defaultTimeoutSeconds: 3 }).policy, podReview(), announced);
  assert.deepEqual(seen.at(0), ['id', 3_000, -1]);
});

test('a policy listed as timed out is not run', () => {
  const guest = new ScriptedGuest(() => ({ accepted: true }));
  const { policy } = load('id: {module: m}', { m: guest });
  const { verdict, observation } = run(policy, podReview(), { timedOut: new Set(['id']) });
  assert.equal(verdict.message, TIMEOUT_MESSAGE);
  assert.equal(observation.outcome, 'timeout');
  assert.equal(guest.calls, 0);
});

const GROUP = `
group:
  expression: a() && (b() || c())
  message: not enough
  policies: {a: {module: a}, b: {module: b}, c: {module: c}}
`;

function group(answers: Record<string, unknown>, yaml = GROUP): Fixture & { guests: Record<string, ScriptedGuest> } {
  const guests = Object.fromEntries(
    Object.entries(answers).map(([name, answer]) => {
      const give = (): unknown => {
        if (answer instanceof Error) {
          throw answer;
        }
        return answer;
      };
      return [name, new ScriptedGuest(give)];
    }),
  );
  return { ...load(yaml, guests), guests };
}

const YES = { accepted: true };
const no = (message: string): object => ({ accepted: false, message });

test('a group denies with its message, and causes only for members that were evaluated and denied', () => {
  const { policy, guests } = group({ a: no('a says no'), b: no('b'), c: YES });
  const reason = { message: 'not enough', causes: [{ message: 'a says no', field: 'spec.policies.a' }] };
  assert.deepEqual(run(policy).verdict, { allowed: false, ...reason, ...NO_EXTRAS });
  assert.deepEqual([guests.a!.calls, guests.b!.calls, guests.c!.calls], [1, 0, 0]);

  const both = run(group({ a: YES, b: no('b'), c: { accepted: false } }).policy);
  const causes = [{ message: 'b', field: 'spec.policies.b' }, { field: 'spec.policies.c' }];
  assert.deepEqual(reasonOf(both.verdict), { message: 'not enough', causes });
});

test('a group allows without status, even if a member denied', () => {
  assert.deepEqual(run(group({ a: YES, b: no('b'), c: YES }).policy).verdict, {
    allowed: true,
    ...NO_EXTRAS,
  });
});

test('a member that mutates is denied', () => {
  const { verdict } = run(group({ a: { accepted: true, mutated_object: MUTATED }, b: YES, c: YES }).policy);
  const causes = [{ message: 'mutation is not allowed inside of policy group', field: 'spec.policies.a' }];
  assert.deepEqual(reasonOf(verdict), { message: 'not enough', causes });
});

test('a group whose result depends on a member that failed is denied with code 500', () => {
  const { verdict, observation } = run(group({ a: TRAP, b: YES, c: YES }).policy);
  const causes = [{ message: 'internal server error: unreachable', field: 'spec.policies.a' }];
  assert.deepEqual(reasonOf(verdict), { message: 'not enough', causes, code: 500 });
  assert.equal(observation.outcome, 'failed');
  assert.equal(run(group({ a: YES, b: TRAP, c: YES }).policy).verdict.allowed, true, 'the result does not depend on b');
});

test('the negation of a failed member is no approval (Kubewarden allows)', () => {
  const yaml = 'group: {expression: "!a()", message: m, policies: {a: {module: a}}}';
  for (const failure of [TRAP, LOOP]) {
    assert.equal(run(group({ a: failure }, yaml).policy).verdict.allowed, false);
  }
  assert.equal(run(group({ a: no('x') }, yaml).policy).verdict.allowed, true);
});

test('a group in monitor mode allows, and a member that is called twice runs once', () => {
  const yaml = 'group: {policyMode: monitor, expression: a() && a(), message: m, policies: {a: {module: a}}}';
  const { policy, guests } = group({ a: no('x') }, yaml);
  const { verdict, observation } = run(policy);
  assert.deepEqual(verdict, { allowed: true, ...NO_EXTRAS });
  assert.equal(observation.accepted, false);
  assert.equal(guests.a!.calls, 1);
});

test('members are reported by id and position, and time out one by one', () => {
  const seen: unknown[] = [];
  const { policy, guests } = group({ a: YES, b: YES, c: YES });
  const { verdict, observation } = run(policy, podReview(), {
    timedOut: new Set(['group/b']),
    onUnitStart: (id, timeoutMs, member) => seen.push([id, timeoutMs, member]),
  });
  assert.equal(verdict.allowed, true);
  assert.deepEqual(seen, [
    ['group/a', 2_000, 0],
    ['group/c', 2_000, 2],
  ]);
  assert.equal(guests.b!.calls, 0);
  assert.equal(observation.outcome, 'verdict');
  const needed = run(policy, podReview(), { timedOut: new Set(['group/a']) });
  assert.equal(needed.observation.outcome, 'timeout');
  assert.deepEqual(needed.verdict.causes, [{ message: TIMEOUT_MESSAGE, field: 'spec.policies.a' }]);
});

test('every guest of a policy checks its settings', () => {
  const picky = new ScriptedGuest(() => YES, {
    settings: (settings) => ('key' in (settings as JsonObject) ? { valid: true } : { valid: false, message: 'no key' }),
  });
  assert.deepEqual(checkSettings(load('id: {module: m, settings: {key: k}}', { m: picky }).policy), { valid: true });
  assert.deepEqual(checkSettings(load('id: {module: m}', { m: picky }).policy), { valid: false, message: 'no key' });
  const entered: unknown[] = [];
  const { policy } = load(
    'g: {expression: a() && b() && c(), message: m, policies: {a: {module: m}, b: {module: m, settings: {key: 1}}, c: {module: m}}}',
    { m: picky },
  );
  const verdict = checkSettings(policy, (id, timeoutMs, member) => entered.push([id, timeoutMs, member]));
  assert.deepEqual(verdict, { valid: false, message: 'g/a: no key; g/c: no key' });
  assert.deepEqual(entered, [
    ['g/a', 2_000, 0],
    ['g/b', 2_000, 1],
    ['g/c', 2_000, 2],
  ]);
});

test('a guest that fails to check settings is an error', () => {
  const failing = new ScriptedGuest(() => YES, {
    settings: () => {
      throw TRAP;
    },
  });
  assert.throws(() => checkSettings(load('id: {module: m}', { m: failing }).policy), { code: 'guest-error' });
});

test('context-aware Rego policies get the declared kinds as their inventory', () => {
  const port: HostPort = {
    request: (capability, payload) => {
      const { kind } = JSON.parse(payload) as { kind: string };
      if (capability === 'kubernetes/get_resource_plural_name') {
        return JSON.stringify(`${kind.toLowerCase()}s`);
      }
      assert.equal(capability, 'kubernetes/list_resources_all');
      const namespaced = kind === 'Pod' ? { namespace: '__proto__' } : {};
      return JSON.stringify({ items: [{ metadata: { name: 'constructor', ...namespaced } }] });
    },
  };
  const yaml =
    'id: {module: m, contextAwareResources: [{apiVersion: v1, kind: Namespace}, {apiVersion: v1, kind: Pod}]}';
  const inventoryOf = (mode: 'opa' | 'gatekeeper' | 'wasi'): string | undefined => {
    let inventory: string | undefined;
    const guest = new ScriptedGuest(({ input }) => ((inventory = input.inventoryJson), YES), { mode });
    run(load(yaml, { m: guest }, { port }).policy);
    return inventory;
  };
  const pod = '{"metadata":{"name":"constructor","namespace":"__proto__"}}';
  const namespace = '{"metadata":{"name":"constructor"}}';
  assert.equal(
    inventoryOf('opa'),
    `{"namespaces":{"constructor":${namespace}},"pods":{"__proto__":{"constructor":${pod}}}}`,
  );
  assert.equal(
    inventoryOf('gatekeeper'),
    `{"cluster":{"v1":{"Namespace":{"constructor":${namespace}}}},"namespace":{"__proto__":{"v1":{"Pod":{"constructor":${pod}}}}}}`,
  );
  assert.equal(inventoryOf('wasi'), undefined);
  const unreachable = new ScriptedGuest(() => YES, { mode: 'opa' });
  const { verdict } = run(load(yaml, { m: unreachable }).policy);
  assert.deepEqual(reasonOf(verdict), { message: 'internal server error: nothing is there', code: 500 });
});
