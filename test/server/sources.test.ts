// Failing sources of modules, and restarts meanwhile.
import assert from 'node:assert/strict';
import { readFile, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  example,
  exampleReview,
  guest,
  ModuleSource,
  moduleBytes,
  requiredLabel,
  requires,
  review,
  type SourceBehaviour,
  startServer,
  until,
} from './harness.ts';

describe('a module source', () => {
  it('that fails is retried until it answers, while the old version serves', async () => {
    const accept = await moduleBytes(guest('accept'));
    const failures: Readonly<Record<string, { behaviour: SourceBehaviour; message: RegExp; reason: string }>> = {
      'not-found': { behaviour: { kind: 'status', status: 404 }, message: /404/, reason: 'ModuleNotFound' },
      broken: { behaviour: { kind: 'status', status: 500 }, message: /500/, reason: 'SourceFailed' },
      down: { behaviour: { kind: 'down' }, message: /reach|connection|closed/i, reason: 'FetchFailed' },
      hangs: { behaviour: { kind: 'hang' }, message: /time|within/, reason: 'FetchFailed' },
      'redirects-for-ever': {
        behaviour: { kind: 'redirect-loop' },
        message: /redirects too often/,
        reason: 'FetchFailed',
      },
      truncates: { behaviour: { kind: 'truncate', bytes: accept }, message: /./, reason: 'FetchFailed' },
      'serves-a-page': {
        behaviour: { kind: 'serve', bytes: Buffer.from('<html>not here</html>') },
        message: /WebAssembly/,
        reason: 'InvalidModule',
      },
    };
    const ids = Object.keys(failures);
    await using sources = new AsyncDisposableStack();
    const sourceOf = new Map<string, ModuleSource>();
    for (const [id, { behaviour }] of Object.entries(failures)) {
      sourceOf.set(id, sources.use(await ModuleSource.start(behaviour)));
    }
    const other = { other: requires('other') };
    await using server = await startServer({
      policies: { ...other, ...Object.fromEntries(ids.map((id) => [id, requires(`old-${id}`)])) },
      // A busy machine needs some time to follow redirects until there are too many.
      fetchTimeoutMs: 3_000,
    });
    await server.write({
      ...other,
      ...Object.fromEntries(ids.map((id) => [id, { module: sourceOf.get(id)?.url }])),
    });
    await Promise.all(
      Object.entries(failures).map(async ([id, { message, reason }]) => {
        const source = sourceOf.get(id)!;
        const status = await server.reaches(id, { phase: 'Degraded' });
        assert.match(status.message, message, id);
        assert.equal(status.reason, reason);
        assert.ok(status.nextRetry !== null, 'the status has the time of the next attempt');
        assert.equal(requiredLabel(await server.review(id, review())), `old-${id}`);
        const { attempts } = status;
        await until(
          async () => (await server.status(id)).attempts > attempts,
          () => `another try of ${id}`,
        );
        assert.equal(requiredLabel(await server.review(id, review())), `old-${id}`);
        assert.equal(requiredLabel(await server.review('other', review())), 'other');
        source.behaviour = { kind: 'serve', bytes: accept };
        const healed = await server.reaches(id, { phase: 'Active' });
        assert.equal(healed.nextRetry, null);
        assert.equal((await server.review(id, review())).allowed, true);
      }),
    );
  });

  it('that does not answer does not delay changes of other policies', async () => {
    await using source = await ModuleSource.start({ kind: 'hang' });
    await using server = await startServer({ policies: { other: requires('v0') } });
    await server.write({ other: requires('v0'), p: { module: source.url } });
    await until(() => source.requests > 0);
    await server.write({ other: requires('v1'), p: { module: source.url } });
    await server.reaches('other', { phase: 'Active' });
    await until(async () => requiredLabel(await server.review('other', review())) === 'v1');
    assert.equal((await server.status('p')).phase, 'Pending');
    const early = await server.post('/validate/p', JSON.stringify(review()));
    assert.equal(early.status, 503);
    assert.match(early.text, /policy p is being loaded/);
    assert.equal((await server.post('/validate/nobody', JSON.stringify(review()))).status, 404);
  });
});

describe('a restart', () => {
  const example1 = exampleReview('pod-privileged', 'rejected');

  it('with the source down serves from the cache', async () => {
    await using source = await ModuleSource.start({
      kind: 'serve',
      bytes: await moduleBytes(example('pod-privileged')),
    });
    const policies = { p: { module: source.url }, other: requires('x') };
    await using first = await startServer({ policies });
    const { serving } = await first.status('p');
    await first.stop();
    source.behaviour = { kind: 'down' };
    await using second = await startServer({ policies, folder: first.folder });
    const status = await second.status('p');
    assert.deepEqual([status.phase, status.reason], ['Active', 'ServingFromCache'], status.message);
    assert.deepEqual(status.serving?.modules, serving?.modules);
    assert.equal((await second.review('p', example1)).allowed, false);
    // And uses the source when it is available again.
    source.behaviour = { kind: 'serve', bytes: await moduleBytes(guest('accept')) };
    await second.reaches('p', { phase: 'Active', reason: 'Serving' });
    assert.equal((await second.review('p', example1)).allowed, true);
  });

  it('with a newer product serves the last good settings of a builtin policy', async () => {
    const builtin = (enforce: string): object => ({ module: 'builtin:pod-security', settings: { enforce } });
    await using first = await startServer({ policies: { p: builtin('restricted') } });
    await first.stop();
    const record = join(first.folder.dataDir, 'serving.json');
    const text = await readFile(record, 'utf8');
    assert.match(text, /builtin:pod-security@/);
    await writeFile(record, text.replaceAll(/builtin:pod-security@[\d.]+/g, 'builtin:pod-security@0.0.1'));
    await using second = await startServer({ policies: { p: builtin('nonsense') }, folder: first.folder });
    const status = await second.status('p');
    assert.deepEqual([status.phase, status.reason], ['Degraded', 'InvalidSettings'], status.message);
    const pod = exampleReview('pod-security', 'rejected');
    assert.equal((await second.review('p', pod)).status?.code, 403);
  });

  it('with an unavailable new version serves the last good one', async () => {
    await using source = await ModuleSource.start({
      kind: 'serve',
      bytes: await moduleBytes(example('pod-privileged')),
    });
    await using first = await startServer({ policies: { p: { module: source.url }, other: requires('x') } });
    const { serving } = await first.status('p');
    await first.stop();
    source.behaviour = { kind: 'status', status: 503 };
    const policies = { p: { module: `${source.url}?v2` }, other: requires('y') };
    await using second = await startServer({ policies, folder: first.folder });
    const status = await second.status('p');
    assert.deepEqual([status.phase, status.reason], ['Degraded', 'SourceFailed'], status.message);
    assert.equal(status.serving?.version, serving?.version);
    assert.equal((await second.review('p', example1)).allowed, false);
    assert.equal(requiredLabel(await second.review('other', review())), 'y');
    source.behaviour = { kind: 'serve', bytes: await moduleBytes(guest('accept')) };
    await second.reaches('p', { phase: 'Active' });
    assert.equal((await second.review('p', example1)).allowed, true);
  });

  it('with an invalid policies file serves the recorded policies', async () => {
    await using first = await startServer({
      policies: { p: requires('kept'), group: { expression: 'a()', message: 'g', policies: { a: requires('x') } } },
    });
    await first.stop();
    await using second = await startServer({ policies: 'p: [', folder: first.folder });
    assert.match((await second.source()).error ?? '', /policies\.yml:\d+:\d+/);
    const status = await second.status('p');
    assert.deepEqual([status.phase, status.reason], ['Degraded', 'PoliciesFileUnusable']);
    assert.equal(requiredLabel(await second.review('p', review())), 'kept');
    assert.equal((await second.review('group', review())).status?.message, 'g');
    assert.equal((await second.get('/readyz')).status, 200);
    await second.write({ p: requires('fixed') });
    await second.reaches('p', { phase: 'Active' });
    assert.equal(requiredLabel(await second.review('p', review())), 'fixed');
    await until(async () => (await second.get('/policies/group')).status === 404);
    assert.equal((await second.source()).error, null);
  });

  it('without a policies file serves the recorded policies', async () => {
    await using first = await startServer({ policies: { p: requires('kept') } });
    await first.stop();
    await using second = await startServer({ policies: '- not usable', folder: first.folder });
    await unlink(second.folder.policiesFile);
    assert.equal(requiredLabel(await second.review('p', review())), 'kept');
    await second.stop();
    await using third = await startServer({ policies: '- still not usable', folder: first.folder });
    assert.equal(requiredLabel(await third.review('p', review())), 'kept', 'the record outlives a start that failed');
  });

  it('without a cache keeps the record', async () => {
    await using first = await startServer({ policies: { p: requires('kept') } });
    await first.stop();
    const modules = join(first.folder.dataDir, 'modules');
    await rename(modules, `${modules}.aside`);
    await using second = await startServer({ policies: '[', folder: first.folder });
    const { phase, message } = await second.status('p');
    assert.equal(phase, 'Error');
    assert.match(message, /cache/);
    await second.stop();
    await rm(modules, { recursive: true, force: true });
    await rename(`${modules}.aside`, modules);
    await using third = await startServer({ policies: '[', folder: first.folder });
    assert.equal(requiredLabel(await third.review('p', review())), 'kept');
  });
});
