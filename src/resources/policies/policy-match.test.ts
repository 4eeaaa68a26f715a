import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isOwnBucket, ownBucket, policyMatch, policyOfBucket } from './policy-match.ts';
import { type AdmissionPolicySpec, policyId } from './policy-names.ts';

const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };

function bucketOf(kind: string, name: string, rest: object = {}, ownWebhook = true, namespace?: string): string {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  const spec = { mutating: false, rules: [RULE], ...rest } as unknown as AdmissionPolicySpec;
  return policyMatch({ kind, metadata, spec }, { productNamespace: 'portcullis', ownWebhook }).bucket;
}

describe('an own bucket', () => {
  it('names the type of its webhook, and its policy', () => {
    const member = { policies: { a: { module: 'm' } }, expression: 'a()' };
    for (const [kind, namespace] of [
      ['ClusterAdmissionPolicy', undefined],
      ['AdmissionPolicy', 'shop'],
      ['ClusterAdmissionPolicyGroup', undefined],
      ['AdmissionPolicyGroup', 'shop'],
    ] as const) {
      const id = policyId({ kind, metadata: { name: 'a.b-c', ...(namespace === undefined ? {} : { namespace }) } });
      const isGroup = kind.endsWith('Group');
      const validating = bucketOf(kind, 'a.b-c', isGroup ? member : {}, true, namespace);
      assert.deepEqual([validating, policyOfBucket(validating)], [`validating.${id}`, id]);
      if (!isGroup) {
        const mutating = bucketOf(kind, 'a.b-c', { mutating: true }, true, namespace);
        assert.deepEqual([mutating, policyOfBucket(mutating)], [`mutating.${id}`, id]);
      }
    }
  });

  it('never has the name of a shared bucket', () => {
    const shared = [{}, { mutating: true }, { failurePolicy: 'Ignore' }, { matchPolicy: 'Exact' }].flatMap((rest) => [
      bucketOf('ClusterAdmissionPolicy', 'a', rest, false),
      bucketOf('AdmissionPolicy', 'a', rest, false, 'kw'),
    ]);
    assert.deepEqual(shared.filter(isOwnBucket), []);
    for (const name of ['fail.equivalent.cluster.v1', 'validating.fail.equivalent.cluster.v1', 'namespaced']) {
      const own = bucketOf('ClusterAdmissionPolicy', name);
      assert.ok(!shared.includes(own));
      assert.equal(policyOfBucket(own), `kw.cap.${name}`);
    }
  });

  it('is unique to its policy', () => {
    const others = ['validating.kw.cap.a', 'mutating.kw.cap.a', 'kw.cap.a', 'cap.a'];
    const buckets = others.flatMap((name) => [
      bucketOf('ClusterAdmissionPolicy', name),
      bucketOf('AdmissionPolicy', name, {}, true, 'validating'),
      bucketOf('AdmissionPolicy', name, { mutating: true }, true, 'kw'),
    ]);
    const all = [...buckets, ownBucket(false, 'kw.cap.a'), ownBucket(true, 'kw.cap.a')];
    assert.equal(new Set(all).size, all.length);
    assert.ok(buckets.every((bucket) => policyOfBucket(bucket) !== 'kw.cap.a'));
  });

  it('is named by its kind of webhooks and the policy’s id', () => {
    assert.equal(policyOfBucket('validating.kw.cap.a'), 'kw.cap.a');
    for (const name of [
      '',
      'kw.cap.a',
      'kw.',
      'kwcap',
      'other.kw.cap.a',
      'validating.mutating.kw.cap.a',
      'validating..kw.cap.a',
    ]) {
      assert.equal(policyOfBucket(name), undefined, name);
    }
  });
});
