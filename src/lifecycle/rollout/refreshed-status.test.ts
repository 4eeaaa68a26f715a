import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refreshedStatus } from './refreshed-status.ts';
import type { AdmissionRevision } from './admission-rollout-view.ts';
import { revision } from './testing/rollout-scene.ts';

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;
const modules = (letter: string, count = 1): AdmissionRevision['modules'] =>
  Array.from({ length: count }, (_, i) => ({ name: `m${i}`, module: 'https://r/p.wasm', digest: digest(letter) }));
const of = (...revisions: readonly AdmissionRevision[]): ReturnType<typeof refreshedStatus> =>
  refreshedStatus({ revisions }, undefined);

describe('the status of a refresh', () => {
  const first = revision(1, 'Retired', { modules: modules('a') });
  const made = (rest: Partial<AdmissionRevision> = {}): AdmissionRevision =>
    revision(2, 'Serving', { refresh: 'now', modules: modules('b'), ...rest });

  it('is absent without one', () => {
    assert.equal(of(), undefined);
    assert.equal(of(first), undefined);
  });

  it('names the digests that were replaced', () => {
    const message = `revision 2 has new modules: m0: ${digest('b')} instead of ${digest('a')}`;
    assert.deepEqual(of(first, made()), { value: 'now', result: 'Changed', message });
    const many = of(revision(1, 'Retired', { modules: modules('a', 9) }), made({ modules: modules('b', 9) }));
    assert.match(many?.message ?? '', /m4: \S+ instead of \S+, 4 more$/);
  });

  it('names the manifest of a module from a registry, as a reference does', () => {
    const pushed = (letter: string): AdmissionRevision['modules'] =>
      modules('c').map((module) => ({ ...module, manifest: digest(letter) }));
    const status = of(revision(1, 'Retired', { modules: pushed('a') }), made({ modules: pushed('b') }));
    assert.match(status?.message ?? '', new RegExp(`m0: ${digest('b')} instead of ${digest('a')}$`));
  });

  it('says that nothing has changed', () => {
    const status = of(revision(1, 'Serving', { refreshed: 'now' }));
    assert.deepEqual(status, {
      value: 'now',
      result: 'Unchanged',
      message: 'the modules of revision 1 have not changed',
    });
  });

  it('says which failure prevents it, and keeps the last result before there is one', () => {
    const failed = made({ state: 'Candidate', reason: 'FetchFailed', modules: [] });
    assert.deepEqual(of(first, failed), {
      value: 'now',
      result: 'Unresolved',
      message: 'revision 2 cannot serve: FetchFailed',
    });
    const refreshed = { value: 'before', result: 'Unchanged', message: 'x' } as const;
    const candidate = made({ state: 'Candidate', modules: [] });
    assert.equal(refreshedStatus({ revisions: [first, candidate] }, { refreshed }), refreshed);
  });

  it('names no digests for a revision that a change of the spec made', () => {
    const third = revision(3, 'Serving', { refresh: 'now', modules: modules('c') });
    assert.equal(of(made(), third)?.message, 'revision 3 has the modules that its references lead to');
  });
});
