import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type JsonObject, type MemberVerdict, type ObjectVerdict, readPolicyDefinition } from '../../engine/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import { silentCapabilities } from '../testing/worker-tables.ts';
import { EvaluationHost, type HostedPolicy } from './evaluation-host.ts';

const PODS = { group: '', version: 'v1', resource: 'pods' };
const POD_RULES = [
  { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'], scope: '*' },
] as const;

const MATCH: PolicyMatch = {
  bucket: 'validating.fail.equivalent.cluster',
  isMutating: false,
  failurePolicy: 'Fail',
  matchPolicy: 'Equivalent',
  rules: POD_RULES,
  namespaceSelector: {},
  objectSelector: {},
  matchConditions: [],
  timeoutSeconds: 10,
};

function pod(namespace: string, image: string): JsonObject {
  const metadata = { name: 'web', namespace, labels: { app: 'web' } };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'main', image }] } };
}

const labelled = (name: string, labels: JsonObject): JsonObject => ({ metadata: { name, labels } });

function policy(id: string, entry: object, rest: Partial<HostedPolicy> = {}): HostedPolicy {
  const { definition, faults } = readPolicyDefinition(id, entry);
  assert.ok(definition, JSON.stringify(faults));
  return { id, definition, ...rest };
}

const withoutTime = ({ ms: _ms, ...member }: MemberVerdict): Omit<MemberVerdict, 'ms'> => member;

/** A policy with a guest of `test/fixtures/guests`. */
function guest(id: string, name: string, entry: object = {}): HostedPolicy {
  const bytes = readFileSync(new URL(`../../../test/fixtures/guests/${name}.wasm`, import.meta.url));
  return policy(id, { module: 'file:///m.wasm', ...entry }, { provided: { 'file:///m.wasm': { bytes } } });
}

const cel = (expression: string, message: string, reason = 'Invalid'): object => ({
  module: 'builtin:cel',
  settings: { validations: [{ expression, message, reason }] },
});
const noLatest = cel("object.spec.containers.all(c, !c.image.endsWith(':latest'))", 'pin the version of each image');

describe('an evaluation host', () => {
  let host: EvaluationHost;
  const restarts: string[] = [];
  before(async () => {
    host = new EvaluationHost({
      cacheDir: join(tmpdir(), 'portcullis-evaluation-host'),
      workers: 2,
      defaultTimeoutSeconds: 1,
      // Nobody answers: a guest that asks the host waits until it is cut off.
      connectCapabilities: silentCapabilities,
      onRestart: (reason) => restarts.push(reason),
      find: () => Promise.resolve({ state: 'absent' }),
      log: () => undefined,
    });
    await host.start();
  });
  after(() => host[Symbol.asyncDispose]());

  async function verdicts(
    policies: readonly HostedPolicy[],
    object: JsonObject,
    namespace?: JsonObject,
  ): Promise<readonly ObjectVerdict[]> {
    for (const [id, outcome] of await host.serve(policies)) {
      assert.ok(outcome.ok, `${id}: ${JSON.stringify(outcome)}`);
    }
    return await host.evaluate({ object, resource: PODS, ...(namespace === undefined ? {} : { namespace }) });
  }

  it('gives the verdict of a policy on an object, with message, code, reason and time', async () => {
    const [verdict, ...others] = await verdicts([policy('no-latest', noLatest)], pod('shop', 'web:latest'));
    const { ms = -1, ...rest } = verdict ?? assert.fail('no verdict');
    assert.deepEqual(others, []);
    assert.ok(ms >= 0, `${ms} ms`);
    assert.deepEqual(rest, {
      policy: 'no-latest',
      mode: 'protect',
      outcome: 'verdict',
      allowed: false,
      message: 'pin the version of each image',
      code: 422,
      reason: 'Invalid',
      warnings: [],
      mutates: false,
    });
    const [good] = await host.evaluate({ object: pod('shop', 'web:1'), resource: PODS });
    assert.deepEqual(
      [good?.outcome, good?.allowed, good?.message, good?.reason],
      ['verdict', true, undefined, undefined],
    );
  });

  it('says what a policy in monitor mode would do, and its own message for denials', async () => {
    const [verdict] = await verdicts(
      [policy('watched', { ...noLatest, policyMode: 'monitor', message: 'see the handbook' })],
      pod('shop', 'web:latest'),
    );
    assert.deepEqual([verdict?.mode, verdict?.allowed, verdict?.message], ['monitor', false, 'see the handbook']);
  });

  it('says of each member of a group what it decided, and whether it was needed', async () => {
    const members = {
      latest: noLatest,
      named: cel("object.metadata.name != 'web'", 'another name please'),
      unneeded: cel('true', 'never'),
    };
    const group = { policies: members, expression: 'latest() || (named() && unneeded())', message: 'one of both' };
    const [verdict] = await verdicts([policy('either', group)], pod('shop', 'web:latest'));
    assert.deepEqual([verdict?.allowed, verdict?.message], [false, 'one of both']);
    assert.deepEqual(verdict?.members?.map(withoutTime), [
      { name: 'latest', outcome: 'verdict', allowed: false, message: 'pin the version of each image' },
      { name: 'named', outcome: 'verdict', allowed: false, message: 'another name please' },
      { name: 'unneeded', outcome: 'skipped', allowed: false },
    ]);
    assert.deepEqual(
      verdict.members.map(({ ms }) => ms === undefined),
      [false, false, true],
    );
  });

  it('cuts off a policy that does not end, and gives the verdicts of all others', async () => {
    const before = restarts.length;
    const waits = guest('waits', 'wasi-host-call', { hostCapabilities: ['*'] });
    const loops = guest('loops', 'loop-in-validate');
    const all = await verdicts([loops, waits, policy('no-latest', noLatest)], pod('shop', 'web:latest'));
    assert.deepEqual(
      all.map(({ policy: id, outcome, allowed, reason }) => [id, outcome, allowed, reason]),
      [
        ['loops', 'timeout', false, 'Timeout'],
        ['waits', 'timeout', false, 'Timeout'],
        ['no-latest', 'verdict', false, 'Invalid'],
      ],
    );
    assert.match(all[1]?.message ?? '', /exceeded the allowed execution time/);
    assert.ok(restarts.slice(before).includes('timeout'), 'the thread that waited was replaced');
  });

  it('sends an object to a worker once for all its policies, and alone for those that may hold it for long', async (context) => {
    const { provided = {} } = guest('loops', 'loop-in-validate');
    const members = { loops: { module: 'file:///m.wasm' }, latest: noLatest };
    const group = { policies: members, expression: 'loops() || latest()', message: 'no' };
    const ofShop = { match: { ...MATCH, namespace: 'shop' } };
    const policies = [
      policy('first', noLatest),
      policy('of-shop', noLatest, ofShop),
      policy('other', noLatest),
      policy('group', group, { provided }),
    ];
    const judge = context.mock.method(host.pool, 'judge');
    const asked = (): readonly (readonly string[])[] => judge.mock.calls.map((call) => call.arguments[0]);
    const first = await verdicts(policies, pod('shop', 'web:latest'), labelled('shop', {}));
    const all = ['first', 'of-shop', 'other', 'group'];
    assert.deepEqual(asked(), [all, ['of-shop']], 'a policy of a namespace is tried alone');
    assert.deepEqual(
      first.map(({ policy: id, outcome, message }) => [id, outcome, message]),
      [
        ['first', 'verdict', 'pin the version of each image'],
        ['of-shop', 'verdict', 'pin the version of each image'],
        ['other', 'verdict', 'pin the version of each image'],
        ['group', 'timeout', 'no'],
      ],
    );
    judge.mock.resetCalls();
    await host.evaluate({ object: pod('shop', 'web:1'), resource: PODS }, { policies: ['first', 'other', 'group'] });
    assert.deepEqual(asked(), [['first', 'other', 'group'], ['group']], 'a slow policy waits alone');
  });

  it('says why a policy gave no verdict: an error, or a version that cannot be loaded', async () => {
    const outcomes = await host.serve([guest('errs', 'guest-error'), guest('refused', 'settings-refused')]);
    assert.deepEqual([outcomes.get('errs')?.ok, outcomes.get('refused')?.ok], [true, false]);
    const all = await host.evaluate({ object: pod('shop', 'web:1'), resource: PODS });
    assert.deepEqual(
      all.map(({ policy: id, outcome, allowed, code, reason }) => [id, outcome, allowed, code, reason]),
      [
        ['errs', 'failed', false, 500, 'InternalError'],
        ['refused', 'not-initialized', false, 500, 'InternalError'],
      ],
    );
    assert.match(all[0]?.message ?? '', /the guest says no/);
    assert.notEqual(all[1]?.message ?? '', '');
  });

  it('skips the policies that do not match: of another namespace, other rules, other labels', async () => {
    const selector = { matchLabels: { tier: 'prod' } };
    const policies = [
      policy('of-shop', noLatest, { match: { ...MATCH, namespace: 'shop' } }),
      policy('of-other', noLatest, { match: { ...MATCH, namespace: 'other' } }),
      policy('of-secrets', noLatest, { match: { ...MATCH, rules: [{ ...POD_RULES[0], resources: ['secrets'] }] } }),
      policy('of-prod', noLatest, { match: { ...MATCH, namespaceSelector: selector } }),
    ];
    const reasons = async (tier: string): Promise<readonly unknown[]> =>
      (await verdicts(policies, pod('shop', 'web:latest'), labelled('shop', { tier }))).map(({ outcome, reason }) => [
        outcome,
        reason,
      ]);
    assert.deepEqual(await reasons('test'), [
      ['verdict', 'Invalid'],
      ['skipped', 'namespace'],
      ['skipped', 'rules'],
      ['skipped', 'namespaceSelector'],
    ]);
    assert.deepEqual((await reasons('prod'))[3], ['verdict', 'Invalid']);
    // Nobody knows the namespace.
    const [, , , unknown] = await verdicts(policies, pod('shop', 'web:latest'));
    assert.deepEqual([unknown?.outcome, unknown?.allowed], ['failed', false]);
    assert.match(unknown?.message ?? '', /Cannot find v1\/Namespace named "shop"/);
  });

  it('says of a workload what its pod template would bring', async () => {
    const spec = { template: { metadata: {}, spec: { containers: [{ name: 'main', image: 'web:latest' }] } } };
    const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'shop' }, spec };
    await host.serve([policy('no-latest', noLatest, { match: { ...MATCH, podTemplates: 'Warn' } })]);
    const resource = { group: 'apps', version: 'v1', resource: 'deployments' };
    const [verdict] = await host.evaluate({ object, resource });
    assert.deepEqual(
      [verdict?.allowed, verdict?.message],
      [false, 'in the pod template (spec.template): pin the version of each image'],
    );
  });

  it('serves what it was given last, and keeps what did not change', async () => {
    const [kept, replaced] = [policy('kept', noLatest), policy('replaced', noLatest)];
    await host.serve([kept, replaced, policy('gone', noLatest)]);
    const outcomes = await host.serve([policy('replaced', cel('true', 'never')), kept]);
    assert.deepEqual([...outcomes.keys()].toSorted(), ['kept', 'replaced']);
    const all = await host.evaluate({ object: pod('shop', 'web:latest'), resource: PODS });
    assert.deepEqual(Object.fromEntries(all.map((one) => [one.policy, one.allowed])), { kept: false, replaced: true });
    const one = await host.evaluate(
      { object: pod('shop', 'web:latest'), resource: PODS },
      { policies: ['kept', 'gone'] },
    );
    assert.deepEqual(
      one.map((verdict) => verdict.policy),
      ['kept'],
    );
  });
});
