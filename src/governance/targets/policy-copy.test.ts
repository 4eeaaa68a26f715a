import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Policy } from '../../resources/index.ts';
import { copyName, isCopy, isUpToDate, policyCopy, rootOf, rootPolicyLabel } from './policy-copy.ts';

const GROUP = 'policy.open-cluster-management.io';

function root(metadata: Policy['metadata'], spec: Partial<Policy['spec']> = {}): Policy {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name: 'kafka', namespace: 'policies', ...metadata },
    spec: { disabled: false, 'policy-templates': [], ...spec },
  };
}

const replicate = (policy: Policy): Policy =>
  policyCopy(policy, 'policies.kafka', { name: 'local-cluster', namespace: 'local-cluster' }, policy.spec);

describe('the name of a copy', () => {
  it('leads back to its Policy, whose name may have dots', () => {
    const namespaces = fc.stringMatching(/^[a-z0-9]{1,10}$/);
    const names = fc.stringMatching(/^[a-z0-9][a-z0-9.-]{0,20}[a-z0-9]$/);
    fc.assert(
      fc.property(namespaces, names, (namespace, name) => {
        assert.deepEqual(rootOf(copyName({ namespace, name }) ?? ''), { namespace, name });
      }),
    );
  });

  it('has at most 253 characters', () => {
    assert.equal(copyName({ namespace: 'n', name: 'x'.repeat(251) })?.length, 253);
    assert.equal(copyName({ namespace: 'n', name: 'x'.repeat(252) }), undefined);
  });

  for (const name of ['', 'kafka', '.kafka', 'policies.']) {
    it(`is not ${JSON.stringify(name)}`, () => assert.equal(rootOf(name), undefined));
  }
});

describe('the label of a copy', () => {
  it('is its name, if that fits', () => {
    assert.equal(rootPolicyLabel('x'.repeat(63)), 'x'.repeat(63));
  });

  it('is otherwise a valid value that differs between copies', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9][a-z0-9.-]{70,200}[a-z0-9]$/), (name) => {
        const label = rootPolicyLabel(name);
        assert.match(label, /^[a-z0-9][a-z0-9.-]{0,61}[a-z0-9]$/);
        assert.notEqual(label, rootPolicyLabel(`${name}0`));
      }),
    );
  });
});

describe('a copy', () => {
  it('has the labels and annotations of its Policy, and those of the framework', () => {
    const annotations = { note: 'x', 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
    const { metadata } = replicate(root({ labels: { team: 'a' }, annotations }));
    assert.deepEqual(metadata, {
      namespace: 'local-cluster',
      name: 'policies.kafka',
      labels: {
        team: 'a',
        [`${GROUP}/root-policy`]: 'policies.kafka',
        [`${GROUP}/cluster-name`]: 'local-cluster',
        [`${GROUP}/cluster-namespace`]: 'local-cluster',
      },
      annotations: { note: 'x', 'argocd.argoproj.io/compare-options': 'IgnoreExtraneous' },
    });
  });

  it('has only those of the framework with copyPolicyMetadata: false', () => {
    const labels = { team: 'a', [`${GROUP}/tier`]: '1', [`${GROUP}/root-policy`]: 'forged' };
    const { metadata } = replicate(root({ labels }, { copyPolicyMetadata: false }));
    assert.deepEqual([metadata.labels?.['team'], metadata.labels?.[`${GROUP}/tier`]], [undefined, '1']);
    assert.equal(metadata.labels?.[`${GROUP}/root-policy`], 'policies.kafka');
  });

  it('is up to date as long as its spec, labels and annotations are those of the Policy', () => {
    const wanted = replicate(root({}));
    assert.ok(isUpToDate({ ...wanted, status: { compliant: 'Compliant' } }, wanted));
    assert.ok(!isUpToDate({ ...wanted, spec: { ...wanted.spec, remediationAction: 'inform' } }, wanted));
    assert.ok(!isUpToDate({ ...wanted, metadata: { ...wanted.metadata, labels: {} } }, wanted));
  });

  it('is known by its namespace and its label', () => {
    const copy = replicate(root({}));
    assert.ok(isCopy(copy));
    assert.ok(!isCopy(root({ namespace: 'local-cluster' })));
  });
});
