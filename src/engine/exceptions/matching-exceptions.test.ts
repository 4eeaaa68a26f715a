import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ExceptionTerms } from '../../resources/index.ts';
import type { JsonObject } from '../values/json-text.ts';
import { evaluate, readReview } from '../evaluate.ts';
import { createFailedPolicy, createPolicy, type LoadedPolicy } from '../loaded-policy.ts';
import { parsePolicies } from '../definition/policies-file.ts';
import { bytes, deploymentReview, podReview } from '../testing/reviews.ts';
import { ScriptedGuest } from '../testing/scripted-guest.ts';
import { ExceptionTable, exceptionsKey } from './exception-table.ts';

const END = '2027-01-31T12:00:00Z';
const END_MS = Date.parse(END);
const BEFORE = END_MS - 1;
const PODS = { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['nginx'] };

function terms(rest: Partial<ExceptionTerms> = {}): ExceptionTerms {
  return {
    namespace: 'default',
    name: 'one',
    uid: 'uid-one',
    version: '1',
    policies: [{ id: 'id' }],
    objects: PODS,
    matchConditions: [],
    expiresAt: END,
    ...rest,
  };
}

function tableOf(...all: readonly ExceptionTerms[]): ExceptionTable {
  const table = new ExceptionTable();
  all.forEach((one) => table.set(one));
  return table;
}

function policyOf(yaml: string, exceptions: ExceptionTable, ...guests: readonly ScriptedGuest[]): LoadedPolicy {
  const { policies, problems } = parsePolicies(yaml, 'policies.yml');
  assert.deepEqual(problems, []);
  return createPolicy(policies[0] ?? assert.fail(), (module) => guests[Number(module[0])] ?? assert.fail(module), {
    port: { request: () => assert.fail() },
    log: () => undefined,
    exceptions,
  });
}

const DENIES = { accepted: false, message: 'no' };

function outcomeOf(
  exceptions: ExceptionTable,
  {
    answer = DENIES,
    review = podReview(),
    now = BEFORE,
    yaml = 'id: {module: 0.wasm}',
  }: {
    readonly answer?: unknown;
    readonly review?: JsonObject;
    readonly now?: number;
    readonly yaml?: string;
  } = {},
): ReturnType<typeof evaluate> {
  const guest = new ScriptedGuest(() => answer);
  return evaluate(policyOf(yaml, exceptions, guest), readReview('validate', bytes(review)), { route: 'validate', now });
}

describe('an exception', () => {
  it('has a denied request allowed, and names itself in audit log and observation', () => {
    const { verdict, observation } = outcomeOf(tableOf(terms()), { now: END_MS - 30 * 86_400_000 });
    assert.deepEqual(verdict, { allowed: true, auditAnnotations: { exception: 'default/one' }, warnings: null });
    assert.deepEqual([observation.outcome, observation.exception], ['excepted', 'default/one']);
  });

  it('is used by a request, but not by a dry run or an audit', () => {
    const table = tableOf(terms());
    const usesOf = (request: JsonObject, route: 'validate' | 'audit' = 'validate'): readonly string[] => {
      const guest = new ScriptedGuest(() => DENIES);
      const review = readReview('validate', bytes(podReview(request)));
      return evaluate(policyOf('id: {module: 0.wasm}', table, guest), review, { route, now: BEFORE }).uses;
    };
    assert.deepEqual([usesOf({}), usesOf({ dryRun: true }), usesOf({}, 'audit')], [['uid-one'], [], []]);
    assert.deepEqual(outcomeOf(table, { answer: { accepted: true } }).uses, [], 'nothing was to be excepted');
  });

  it('warns in its last week', () => {
    assert.deepEqual(outcomeOf(tableOf(terms())).verdict.warnings, [
      'allowed only by the exception default/one, which ends at 2027-01-31T12:00:00Z',
    ]);
  });

  it('applies until its second, and not in it', () => {
    assert.equal(outcomeOf(tableOf(terms()), { now: END_MS - 1 }).verdict.allowed, true);
    assert.equal(outcomeOf(tableOf(terms()), { now: END_MS }).verdict.allowed, false);
  });

  it('keeps the patch of a mutating policy from being applied', () => {
    const object = { ...((podReview()['request'] as JsonObject)['object'] as JsonObject), spec: {} };
    const yaml = 'id: {module: 0.wasm, allowedToMutate: true}';
    const answer = { accepted: true, mutated_object: object };
    assert.equal(outcomeOf(tableOf(terms()), { answer, yaml }).verdict.patch, undefined);
    assert.notEqual(outcomeOf(tableOf(), { answer, yaml }).verdict.patch, undefined);
  });

  it('leaves alone what the policy allows, with its own annotations', () => {
    const { verdict, observation } = outcomeOf(tableOf(terms()), {
      answer: { accepted: true, audit_annotations: { k: 'v' } },
    });
    assert.deepEqual(verdict.auditAnnotations, { k: 'v' });
    assert.equal(observation.outcome, 'verdict');
  });

  it('is for a policy that cannot be loaded, too', () => {
    const policy = createFailedPolicy(
      { id: 'id', message: 'broken' },
      { port: { request: () => assert.fail() }, log: () => undefined, exceptions: tableOf(terms()) },
    );
    const review = readReview('validate', bytes(podReview()));
    assert.equal(evaluate(policy, review, { route: 'validate', now: BEFORE }).verdict.allowed, true);
  });

  const labelled = (labels: JsonObject): JsonObject =>
    podReview({ object: { kind: 'Pod', metadata: { name: 'web', labels } } });
  const named = (metadata: JsonObject): JsonObject => podReview({ object: { kind: 'Pod', metadata } });
  const only = (objects: Partial<ExceptionTerms['objects']>): ExceptionTerms =>
    terms({ objects: { kinds: PODS.kinds, ...objects } });
  const condition = (expression: string): ExceptionTerms => terms({ matchConditions: [{ name: 'c', expression }] });
  const BY_LABEL = { labelSelector: { matchLabels: { app: 'importer' } } };
  for (const [what, one, review, isExcepted] of [
    ['another policy', terms({ policies: [{ id: 'other' }] }), podReview(), false],
    ['another namespace', terms({ namespace: 'shop' }), podReview(), false],
    ['its own namespace to a cluster-scoped object', terms(), podReview({ namespace: null }), false],
    ['another kind', only({ kinds: [{ apiGroup: '', kind: 'Service' }], names: ['nginx'] }), podReview(), false],
    ['another group', only({ kinds: [{ apiGroup: 'apps', kind: 'Pod' }], names: ['nginx'] }), podReview(), false],
    ['another name', only({ names: ['ngin', 'nginx1'] }), podReview(), false],
    ['a prefix', only({ names: ['ngi*'] }), podReview(), true],
    ['another prefix', only({ names: ['nginx1*'] }), podReview(), false],
    ['a generated name', only({ names: ['ngi*'] }), named({ generateName: 'nginx-' }), true],
    [
      'a generated name that only begins like it',
      only({ names: ['nginx-a*'] }),
      named({ generateName: 'nginx-' }),
      false,
    ],
    ['a generated name by no pattern', only({ names: ['nginx-'] }), named({ generateName: 'nginx-' }), false],
    ['labels', only(BY_LABEL), labelled({ app: 'importer' }), true],
    ['other labels', only(BY_LABEL), labelled({ app: 'web' }), false],
    ['labels and another name', only({ ...BY_LABEL, names: ['nginx'] }), labelled({ app: 'importer' }), false],
    ['neither names nor labels', only({}), podReview(), false],
    ['an empty selector', only({ labelSelector: {} }), labelled({ app: 'importer' }), false],
    [
      'an invalid selector',
      only({ labelSelector: { matchExpressions: [{ key: 'a', operator: 'Is' }] } }),
      labelled({ a: 'b' }),
      false,
    ],
    [
      'a deletion',
      terms(),
      podReview({ operation: 'DELETE', object: null, oldObject: { metadata: { name: 'nginx' } } }),
      true,
    ],
    ['a condition', condition("request.userInfo.username == 'kubernetes-admin'"), podReview(), true],
    ['a false condition', condition("object.metadata.name == 'web'"), podReview(), false],
    ['a condition that fails', condition('object.nothing == 1'), podReview(), false],
    ['a condition that does not compile', condition('object.('), podReview(), false],
    ['the authorizer', condition("authorizer.group('').resource('pods').check('get').allowed()"), podReview(), false],
    [
      'a costly condition',
      condition(
        '[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, true)))))))',
      ),
      podReview(),
      false,
    ],
    ['a time that is none', terms({ expiresAt: '2027-02-30T00:00:00Z' }), podReview(), false],
    ['a time with an offset', terms({ expiresAt: '2027-01-31T12:00:00+00:00' }), podReview(), false],
    [
      'the Namespace itself',
      only({ kinds: [{ apiGroup: '', kind: 'Namespace' }], names: ['default'] }),
      podReview({
        kind: { group: '', version: 'v1', kind: 'Namespace' },
        requestKind: { group: '', version: 'v1', kind: 'Namespace' },
        operation: 'UPDATE',
        object: { kind: 'Namespace', metadata: { name: 'default' } },
      }),
      false,
    ],
  ] as const) {
    it(`${isExcepted ? 'applies by' : 'does not apply by'} ${what}`, () => {
      assert.equal(outcomeOf(tableOf(one), { review }).verdict.allowed, isExcepted);
    });
  }

  it('is for a workload whose template the policy reviews, by the workload or by the pod', () => {
    const yaml = 'id: {module: 0.wasm, podTemplates: Enforce}';
    const review = deploymentReview({ metadata: { labels: { app: 'importer' } }, spec: {} });
    const deployment = { kinds: [{ apiGroup: 'apps', kind: 'Deployment' }], names: ['web'] };
    const pods = { kinds: PODS.kinds, labelSelector: { matchLabels: { app: 'importer' } } };
    for (const objects of [deployment, pods]) {
      assert.equal(outcomeOf(tableOf(terms({ objects })), { review, yaml }).verdict.allowed, true);
    }
    assert.equal(outcomeOf(tableOf(terms()), { review, yaml }).verdict.allowed, false);
  });
});

describe('an exception from members of a group', () => {
  const group = (expression: string, members: readonly string[], exceptions: ExceptionTable): boolean => {
    const uses = members.map((name, index) => `${name}: {module: ${index}.wasm}`).join(', ');
    const yaml = `id: {expression: "${expression}", message: rejected, policies: {${uses}}}`;
    // Members named `good` accept.
    const guests = members.map((name) => new ScriptedGuest(() => ({ accepted: name === 'good' })));
    const policy = policyOf(yaml, exceptions, ...guests);
    const review = readReview('validate', bytes(podReview()));
    return evaluate(policy, review, { route: 'validate', now: BEFORE }).verdict.allowed;
  };
  const from = (...members: readonly string[]): ExceptionTable => tableOf(terms({ policies: [{ id: 'id', members }] }));

  it('has them count as fulfilled, and no others', () => {
    assert.equal(group('bad() && good()', ['bad', 'good'], from('bad')), true);
    assert.equal(group('bad() && worse()', ['bad', 'worse'], from('bad')), false);
    assert.equal(group('bad() && worse()', ['bad', 'worse'], from('bad', 'worse')), true);
    assert.equal(group('bad() && good()', ['bad', 'good'], from('other')), false);
  });

  it('is used only where the expression needs its member', () => {
    const usesOf = (expression: string): readonly string[] => {
      const yaml = `id: {expression: "${expression}", message: rejected, policies: {bad: {module: 0.wasm}, worse: {module: 0.wasm}}}`;
      const table = tableOf(
        terms({ policies: [{ id: 'id', members: ['bad'] }] }),
        terms({ name: 'two', uid: 'uid-two', policies: [{ id: 'id', members: ['worse'] }] }),
      );
      return outcomeOf(table, { yaml }).uses;
    };
    assert.deepEqual(usesOf('bad() && worse()'), ['uid-one', 'uid-two']);
    assert.deepEqual(usesOf('bad() || worse()'), ['uid-one']);
  });

  it('adds those of several exceptions', () => {
    const both = tableOf(
      terms({ policies: [{ id: 'id', members: ['bad'] }] }),
      terms({ name: 'two', policies: [{ id: 'id', members: ['worse'] }] }),
    );
    assert.equal(group('bad() && worse()', ['bad', 'worse'], both), true);
  });
});

describe('ExceptionTable', () => {
  it('finds exceptions of a policy in a namespace among ten thousand, without a search', () => {
    const table = new ExceptionTable();
    const names = (count: number): void => {
      for (let index = table.size; index < count; index += 1) {
        table.set(terms({ namespace: `n${index}`, name: `e${index}`, policies: [{ id: `p${index % 7}` }] }));
      }
    };
    /** Of a search through all, more than ten seconds. */
    const timeOf = (): number => {
      const start = performance.now();
      for (let round = 0; round < 20_000; round += 1) {
        assert.equal(table.of('p3', 'n3', BEFORE).length, 1);
      }
      return performance.now() - start;
    };
    names(10_000);
    const ms = timeOf();
    assert.ok(ms < 1_000, `${ms} ms`);
  });

  it('forgets what is replaced or deleted', () => {
    const table = tableOf(terms(), terms({ policies: [{ id: 'other' }] }));
    assert.deepEqual([table.size, table.of('id', 'default', BEFORE)], [1, []]);
    table.delete(terms());
    assert.deepEqual([table.size, table.of('other', 'default', BEFORE)], [0, []]);
  });

  it('gives a key that changes with exceptions and with their end', () => {
    const table = tableOf(terms(), terms({ name: 'two', version: '2', expiresAt: '2027-02-28T00:00:00Z' }));
    const keyAt = (now: number): string => exceptionsKey(table.of('id', 'default', now));
    assert.notEqual(keyAt(BEFORE), keyAt(END_MS));
    assert.equal(keyAt(Date.parse('2028-01-01T00:00:00Z')), '');
  });
});
