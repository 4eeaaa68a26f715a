import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyRevision } from '../../resources/index.ts';
import { historyCause, historyRows, keptServing, revisionModules } from '../../rollout/history/index.ts';
import { digestsText } from './history-table.ts';
import { revisionOf } from './read-revisions.ts';

function revision(number: number, snapshot: object, status: PolicyRevision['status'] = {}): PolicyRevision {
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: { name: `kw.cap.p-${number}`, namespace: 'portcullis' },
    spec: { revision: number, policyGeneration: number + 10, policy: { name: 'p' }, snapshot },
    status,
  } as PolicyRevision;
}

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;

describe('revisions of a policy', () => {
  const first = revision(1, { module: 'builtin:cel', mode: 'protect', settings: { a: [1] } });

  it('have a cause: changed fields, or a rollback', () => {
    const second = revision(2, { module: 'builtin:cel', settings: { a: [2] }, message: 'no' });
    assert.equal(historyCause(first, undefined), 'generation 11');
    assert.equal(historyCause(second, first), 'generation 12: message, mode, settings');
    assert.equal(historyCause(revision(3, { ...(first.spec.snapshot as object) }), first), 'generation 13');
    assert.equal(
      historyCause({ ...first, status: { state: 'Retired', reason: 'Replaced' } }, undefined),
      'generation 11',
    );
    const back = { ...second, spec: { ...second.spec, rollbackOf: 1 }, status: { reason: 'FetchFailed' } };
    assert.equal(historyCause(back as PolicyRevision, first), 'rollback to 1 (FetchFailed)');
  });

  it('have a cause: a refresh, with the modules that it replaces', () => {
    const made = (number: number, refresh: string | undefined, digest: string): PolicyRevision => {
      const modules = [{ name: 'p', module: 'file:///p.wasm', digest: `sha256:${digest.repeat(64)}` }];
      const one = revision(number, { module: 'file:///p.wasm' }, { modules });
      return { ...one, spec: { ...one.spec, ...(refresh === undefined ? {} : { refresh }) } };
    };
    const [before, after] = [made(1, undefined, 'a'), made(2, 'now', 'b')];
    assert.equal(historyCause(after, before), 'refresh: sha256:bbbbbbbbbbbb instead of sha256:aaaaaaaaaaaa');
    assert.equal(historyCause({ ...after, status: { reason: 'FetchFailed' } }, before), 'refresh (FetchFailed)');
    assert.equal(
      historyCause(made(3, 'now', 'c'), after),
      'generation 13',
      'the refresh was handled by the one before',
    );
    assert.equal(historyCause(after, undefined), 'generation 12');
  });

  it('have the digests of their modules, for a group those of its members that were fetched', () => {
    const modules = [{ name: 'b', module: 'file:///b.wasm', digest: DIGEST }];
    const group = revision(
      1,
      { policies: { a: { module: 'file:///a.wasm' }, b: { module: 'file:///b.wasm' } } },
      { modules },
    );
    assert.deepEqual(revisionModules(group), [
      { name: 'a', module: 'file:///a.wasm' },
      { name: 'b', module: 'file:///b.wasm', digest: DIGEST },
    ]);
    const pulled = { name: 'p', module: 'registry://a/b:v1', digest: DIGEST, manifest: DIGEST, verifiedBy: DIGEST };
    const single = revision(1, { module: 'registry://a/b:v1' }, { modules: [pulled] });
    const [{ verifiedBy: _, ...shown }] = [pulled];
    assert.deepEqual(revisionModules(single), [{ ...shown, isVerified: true }]);
    assert.deepEqual(
      historyRows([group, first]).map(({ digests }) => digestsText(digests)),
      ['sha256:0123456789ab', '-'],
    );
  });

  it('include one that serves: the last that started to', () => {
    const states = [
      revision(1, {}, { state: 'Serving', order: 7 }),
      revision(2, {}, { state: 'Serving', order: 6 }),
      revision(3, {}, { state: 'Failed', order: 8 }),
    ];
    assert.equal(keptServing(states)?.spec.revision, 1);
    assert.equal(keptServing([first]), undefined);
  });

  it('are listed when the wanted one is not kept', () => {
    assert.throws(() => revisionOf({ name: 'cap/p' }, [first, revision(4, {})], 2), {
      message: 'cap/p has no revision 2',
      hint: 'These are kept: 1, 4.',
    });
  });
});
