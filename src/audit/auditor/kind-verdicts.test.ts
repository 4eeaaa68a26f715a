import assert from 'node:assert/strict';
import { it } from 'node:test';
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
