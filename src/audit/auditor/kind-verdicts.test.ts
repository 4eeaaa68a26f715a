import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApiResource } from '../../cluster/index.ts';
import type { ObjectVerdict } from '../../engine/index.ts';
import { knownKind } from '../../resources/index.ts';
import { FindingStore } from './finding-store.ts';
import { KindVerdicts } from './kind-verdicts.ts';
import type { PolicyVersion } from './policy-version.ts';

const verdictOf = (message: string): ObjectVerdict => ({
  policy: 'kw.cap.strong',
  mode: 'protect',
  outcome: 'verdict',
  allowed: false,
  message,
  warnings: [],
  mutates: false,
  members: [{ name: 'length', outcome: 'verdict', allowed: false, message }],
});

/** The finding about one object of a kind, as text. */
function findingOf(kind: string, message: string): string {
  const store = new FindingStore();
  // Nothing else is read of them.
  const type = knownKind('v1', kind) as ApiResource;
  const policy = { id: 'kw.cap.strong', name: 'cap/strong', origin: { uid: 'uid-1', generation: 1 } } as PolicyVersion;
  const verdicts = new KindVerdicts(type, store);
  const object = { apiVersion: 'v1', kind, metadata: { namespace: 'shop', name: 'one', uid: 'uid-2' } };
  verdicts.set(verdicts.see(object), policy, 'key', verdictOf(message), object);
  const found = store.of('shop');
  assert.equal(found.length, 1);
  return JSON.stringify(found);
}

it('what policies say of Secrets is not kept, because more people read findings than Secrets', () => {
  const message = 'the password is hunter2';
  assert.doesNotMatch(findingOf('Secret', message), /hunter2/);
  assert.match(findingOf('Secret', message), /"message":"[^"]*--include-secrets/);
  assert.match(findingOf('ConfigMap', message), /"message":"[^"]*hunter2/);
});

it('of a verdict of a group with long messages is kept no more than reports have', () => {
  assert.ok(findingOf('ConfigMap', 'x'.repeat(8_000)).length < 2_000);
});

describe('findings beyond the bound', () => {
  const type = knownKind('v1', 'Pod') as ApiResource;
  const policyOf = (id: string): PolicyVersion =>
    ({ id, name: id, origin: { uid: id, generation: 1 } }) as PolicyVersion;
  const [one, other] = [policyOf('one'), policyOf('other')];
  const pod = (name: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name, uid: name } });
  const judge = (verdicts: KindVerdicts, policy: PolicyVersion, name: string): void =>
    verdicts.set(verdicts.see(pod(name)), policy, 'key', verdictOf('no'), pod(name));

  it('are counted, and their number is known', () => {
    const store = new FindingStore(4, 3);
    const verdicts = new KindVerdicts(type, store);
    ['a', 'b', 'c', 'd', 'e'].forEach((name) => judge(verdicts, one, name));
    assert.deepEqual([verdicts.counts('one').failed, verdicts.unlisted('one'), store.of('shop').length], [5, 2, 3]);
    ['a', 'b'].forEach((name) => judge(verdicts, other, name));
    assert.deepEqual([verdicts.counts('other').failed, verdicts.unlisted('other'), store.of('shop').length], [2, 1, 4]);
  });

  it('are asked for again when there is room', () => {
    const store = new FindingStore(2, 2);
    const verdicts = new KindVerdicts(type, store);
    ['a', 'b', 'c'].forEach((name) => judge(verdicts, one, name));
    const record = verdicts.get('shop/c') ?? assert.fail();
    assert.equal(verdicts.keyOf(record, one), 'key');
    verdicts.remove('shop/a');
    assert.equal(verdicts.keyOf(record, one), undefined);
    verdicts.set(record, one, 'key', verdictOf('no'), pod('c'));
    assert.deepEqual([verdicts.keyOf(record, one), verdicts.unlisted('one'), store.of('shop').length], ['key', 0, 2]);
  });

  it('are gone with their objects and policies', () => {
    const verdicts = new KindVerdicts(type, new FindingStore(0, 0));
    ['a', 'b'].forEach((name) => judge(verdicts, one, name));
    assert.equal(verdicts.unlisted('one'), 2);
    verdicts.remove('shop/a');
    assert.equal(verdicts.unlisted('one'), 1);
    verdicts.removePolicy('one');
    assert.deepEqual([verdicts.unlisted('one'), verdicts.counts('one').failed], [0, 0]);
  });

  it('are not those of an object that has one already', () => {
    const store = new FindingStore(1, 1);
    const verdicts = new KindVerdicts(type, store);
    judge(verdicts, one, 'a');
    judge(verdicts, one, 'a');
    assert.deepEqual([verdicts.unlisted('one'), verdicts.counts('one').failed, store.of('shop').length], [0, 1, 1]);
  });
});
