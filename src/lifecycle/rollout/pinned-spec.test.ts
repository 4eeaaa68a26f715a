import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import { pinnedSpec, rollbackOf } from './pinned-spec.ts';
import { MODULES, revision, spec } from './testing/rollout-scene.ts';

const A = `sha256:${'a'.repeat(64)}`;
const B = `sha256:${'b'.repeat(64)}`;

describe('pinning the modules of a spec', () => {
  for (const [what, module, digest, expected] of [
    ['a tag', 'registry://example.com/policy:v1', A, `registry://example.com/policy:v1@${A}`],
    ['an address', 'https://example.com/policy.wasm', A, `https://example.com/policy.wasm@${A}`],
    ['a file', 'file://./policy.wasm', A, `file://./policy.wasm@${A}`],
    ['a reference with a digest', `file:///policy.wasm@${A}`, A, `file:///policy.wasm@${A}`],
    ['a builtin module', 'builtin:cel', 'builtin:cel@0.1.0', 'builtin:cel'],
  ] as const) {
    it(`of ${what}`, () => {
      const before = spec('1', { module });
      assert.deepEqual(pinnedSpec(before, [{ name: 'policy', module, digest }]), spec('1', { module: expected }));
      assert.deepEqual(before, spec('1', { module }));
    });
  }

  it('names the manifest of a module from a registry, not the module', () => {
    const modules = [{ name: 'policy', module: 'ghcr.io/policy:v1', digest: A, manifest: B }];
    const pinned = pinnedSpec(spec('1', { module: 'ghcr.io/policy:v1' }), modules);
    assert.deepEqual(pinned, spec('1', { module: `ghcr.io/policy:v1@${B}` }));
  });

  it('leaves modules without a digest unchanged', () => {
    assert.deepEqual(pinnedSpec(spec('1'), []), spec('1'));
    assert.deepEqual(pinnedSpec(spec('1'), [{ name: 'policy', module: 'other', digest: A }]), spec('1'));
  });

  it('pins each member of a group to its own digest', () => {
    const policies = {
      one: { module: 'https://example.com/latest.wasm', settings: { a: 1 } },
      two: { module: 'https://example.com/latest.wasm' },
      cel: { module: 'builtin:cel' },
    };
    const group = { policies, expression: 'one() && two()', message: 'no' } as unknown as AdmissionPolicySpec;
    const { module } = policies.one;
    const pinned = pinnedSpec(group, [
      { name: 'one', module, digest: A },
      { name: 'two', module, digest: B },
      { name: 'cel', module: 'builtin:cel', digest: 'builtin:cel@0.1.0' },
    ]);
    assert.deepEqual(pinned, {
      ...group,
      policies: {
        one: { module: `${module}@${A}`, settings: { a: 1 } },
        two: { module: `${module}@${B}` },
        cel: { module: 'builtin:cel' },
      },
    });
  });
});

describe('the revision that a spec rolls back to', () => {
  const pinned = (number: number): AdmissionPolicySpec => pinnedSpec(spec(String(number)), MODULES);

  it('is the newest one whose pinned spec equals it', () => {
    const same = { snapshot: spec('1') };
    const revisions = [revision(1, 'Retired'), revision(2, 'Retired', same), revision(3, 'Serving')];
    assert.equal(rollbackOf(pinned(1), revisions), 2);
    assert.equal(rollbackOf(pinned(3), revisions), 3);
  });

  it('is none for a new spec, or one with a tag', () => {
    const revisions = [revision(1, 'Retired'), revision(2, 'Serving')];
    assert.equal(rollbackOf(spec('3'), revisions), undefined);
    assert.equal(rollbackOf(spec('1'), revisions), undefined);
    assert.equal(rollbackOf(spec('1'), []), undefined);
  });

  it('is an earlier revision whose spec is applied again unchanged', () => {
    const snapshot = spec('1', { module: 'builtin:cel' });
    const modules = [{ name: 'policy', module: 'builtin:cel', digest: 'builtin:cel@0.1.0' }];
    assert.equal(rollbackOf(snapshot, [revision(1, 'Retired', { snapshot, modules }), revision(2, 'Serving')]), 1);
  });

  it('is none without a validation', () => {
    assert.equal(rollbackOf(spec('1'), [revision(1, 'Failed'), revision(2, 'Serving')]), undefined);
  });
});
