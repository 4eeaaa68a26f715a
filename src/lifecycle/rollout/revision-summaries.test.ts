import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { revisionSummaries } from '../../rollout/index.ts';
import type { AdmissionRevision } from './admission-rollout-view.ts';
import { servingStatus } from './serving-status.ts';
import { revision, spec } from './testing/rollout-scene.ts';

const long = (letter: string, length: number): string => letter.repeat(length);

function specsIn(
  revisions: readonly AdmissionRevision[],
  serving?: AdmissionRevision,
): readonly (number | undefined)[] {
  const declared = revisions.at(-1)?.snapshot ?? spec('none');
  return revisionSummaries({ revisions, spec: declared }, serving).flatMap(({ revision: number, spec: text }) =>
    text === undefined ? [] : [number],
  );
}

describe('the revisions in the status of a policy', () => {
  it('are the last ten, newest first, with their causes', () => {
    const revisions = Array.from({ length: 12 }, (_, index) => revision(index + 1, 'Retired'));
    const summaries = revisionSummaries({ revisions, spec: spec('12') }, undefined);
    assert.deepEqual(
      summaries.map(({ revision: number }) => number),
      [12, 11, 10, 9, 8, 7, 6, 5, 4, 3],
    );
    assert.equal(summaries.at(-1)?.cause, 'generation 3: settings');
    assert.deepEqual(
      [summaries[0]?.declared, summaries[0]?.spec, summaries[1]?.declared],
      [true, undefined, undefined],
    );
  });

  it('have the reason of a failure, and not that of a replacement', () => {
    const replaced = revision(1, 'Retired', { reason: 'Replaced' });
    const failed = revision(2, 'Failed', { reason: 'InvalidSettings' });
    const summaries = revisionSummaries({ revisions: [replaced, failed], spec: spec('2') }, replaced);
    assert.deepEqual(
      summaries.map(({ reason }) => reason),
      ['InvalidSettings', undefined],
    );
  });

  it('have the specs of the serving one and of the newest others, without that of the policy', () => {
    const revisions = [1, 2, 3, 4, 5].map((number) => revision(number, number === 1 ? 'Serving' : 'Failed'));
    assert.deepEqual(specsIn(revisions, revisions[0]), [4, 3, 1]);
    assert.deepEqual(specsIn(revisions), [4, 3, 2]);
  });

  it('stay small, whatever specs and modules are', () => {
    const large = { settings: { text: long('x', 9_000) } };
    const revisions = [
      revision(1, 'Serving', { snapshot: spec('1', large) }),
      revision(2, 'Failed', { snapshot: spec('2', { ...large, message: 'other' }) }),
      revision(3, 'Failed'),
      revision(4, 'Failed'),
    ];
    assert.deepEqual(specsIn(revisions, revisions[0]), [3], 'smaller ones are there');
    const modules = Array.from({ length: 100 }, (_, index) => ({
      name: `m${index}`,
      module: `https://example.com/${long('p', 200)}.wasm`,
      digest: `sha256:${String(index).padStart(64, '0')}`,
    }));
    const policies = Object.fromEntries(modules.map(({ name, module }) => [name, { module }]));
    const group = revision(1, 'Serving', { modules, snapshot: spec('1', { policies, expression: 'm0()' }) });
    const { modules: shown, omittedModules = 0 } = servingStatus(group);
    assert.ok(shown.length > 10 && shown.length + omittedModules === 100, `${shown.length} and ${omittedModules}`);
    const [summary] = revisionSummaries({ revisions: [group], spec: group.snapshot }, group);
    assert.deepEqual([summary?.digests.length, summary?.omittedDigests], [5, 95]);
    assert.ok(JSON.stringify([servingStatus(group), summary]).length < 10_000);
  });
});

describe('what serves, in the status of a policy', () => {
  it('has the settings as they were written, unless they are too large', () => {
    const settings = { none: null, list: [null, { a: null }], negative: -0.5 };
    const one = servingStatus(revision(1, 'Serving', { snapshot: spec('1', { settings }) }));
    assert.deepEqual(JSON.parse(one.modules[0]?.settings ?? ''), settings);
    const large = servingStatus(revision(1, 'Serving', { snapshot: spec('1', { settings: { x: long('x', 9_000) } }) }));
    assert.deepEqual(
      large.modules.map((module) => Object.keys(module)),
      [['name', 'module', 'digest']],
    );
  });
});
