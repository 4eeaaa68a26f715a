import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type RollbackCandidate, previousRevision } from './rollback-target.ts';

const REFERENCE = 'registry://r/p:v1';
const spec = (module: string): object => ({ module, mutating: false });
const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

/** A revision that served, with a module whose manifest has this letter. */
function revision(letter: string, rest: Partial<RollbackCandidate> = {}): RollbackCandidate {
  const modules = [{ name: 'p', module: REFERENCE, digest: digest('0'), manifest: digest(letter) }];
  return { order: 1, snapshot: spec(REFERENCE), modules, ...rest };
}

describe('the revision that a rollback restores', () => {
  const [first, second] = [revision('a'), revision('b')];

  it('has the modules from before a refresh', () => {
    assert.equal(previousRevision(spec(REFERENCE), [first, second]), first);
  });

  it('is the one that serves, when a refresh failed', () => {
    const failed = revision('x', { order: 0, modules: [] });
    assert.equal(previousRevision(spec(REFERENCE), [first, failed]), first);
  });

  it('is the one that was rolled back, when a rollback is undone', () => {
    const snapshot = spec(`${REFERENCE}@${digest('a')}`);
    const back = revision('a', { snapshot });
    assert.equal(previousRevision(snapshot, [first, second, back]), second);
  });

  it('differs from the newest one in its spec or its modules', () => {
    assert.equal(previousRevision(spec(REFERENCE), [first]), undefined);
    assert.equal(previousRevision(spec(REFERENCE), [first, revision('a')]), undefined);
    const other = revision('a', { snapshot: spec('registry://r/p:v2') });
    assert.equal(previousRevision(spec(REFERENCE), [other, first]), other);
  });

  it('is not one with the spec of a policy that has no revision yet', () => {
    const newest = revision('b', { snapshot: spec('registry://r/p:v2') });
    assert.equal(previousRevision(spec(REFERENCE), [first, newest]), newest);
    assert.equal(previousRevision(spec(REFERENCE), []), undefined);
  });
});
