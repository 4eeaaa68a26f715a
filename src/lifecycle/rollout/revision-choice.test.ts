import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pinnedSpec } from '../../control/index.ts';
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import { rollbackOf } from '../../rollout/index.ts';
import { MODULES, revision, spec } from './testing/rollout-scene.ts';

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
