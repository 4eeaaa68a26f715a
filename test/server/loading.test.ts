// Policies that take long to load, or never do: others of the same change serve meanwhile, and the server is ready.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { parseMetadata, writeMetadata } from '../../src/modules/index.ts';
import { startingModule } from '../../src/wasm/testing/starting-module.ts';
import { guest, ModuleSource, moduleBytes, requiredLabel, requires, review, startServer, until } from './harness.ts';
import { Threads } from './threads.ts';

/** Longer than any of these tests takes. */
const LONG_SECONDS = 25;
/** Settings whose check never returns. */
const judgedLong = (settings: string): unknown => ({
  module: guest('loop-when-asked'),
  settings: { settings: `${settings}~` },
  timeoutEvalSeconds: LONG_SECONDS,
});
const many = (count: number, entry: (index: number) => unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`long-${index}`, entry(index)]));

describe('a module that takes too long to start within a review', () => {
  it('is refused with the reason, and does not keep others from being served', async () => {
    await using server = await startServer({ policies: { good: requires('v0') } });
    const file = join(server.folder.path, 'start.wasm');
    const metadata = parseMetadata({ protocolVersion: 'v1', executionMode: 'kubewarden-wapc', rules: [] });
    await writeFile(file, writeMetadata(startingModule(800_000), metadata));
    await server.write({ good: requires('v1'), long: { module: pathToFileURL(file).href } });
    const { reason, message } = await server.reaches('long', { phase: 'Error' });
    assert.equal(reason, 'InvalidModule');
    // On a busy machine, the limit by the wall clock ends it before its processor time is known.
    assert.match(
      message,
      /takes \d+ ms of processor time to start: expected at most 500 ms|did not end while it was started/,
    );
    await until(async () => requiredLabel(await server.review('good', review())) === 'v1');
  });
});

describe('policies whose settings check takes long', () => {
  it('do not delay others of the same change, nor the next change', async () => {
    await using server = await startServer({ policies: { good: requires('v0') } });
    const long = many(6, (index) => judgedLong(String(index)));
    const mate = { module: guest('loop-when-asked'), settings: { fine: true } };
    await server.write({ ...long, good: requires('v1'), mate });
    await server.reaches('mate', { phase: 'Active' });
    await until(async () => requiredLabel(await server.review('good', review())) === 'v1');
    assert.equal((await server.review('mate', review())).allowed, true);
    const phases = await Promise.all(Object.keys(long).map(async (id) => (await server.status(id)).phase));
    assert.ok(phases.includes('Pending'), 'they are still being judged');
    assert.equal((await server.get('/readyz')).status, 200);
    const undecided = Object.keys(long)[phases.indexOf('Pending')];
    assert.equal((await server.post(`/validate/${undecided}`, JSON.stringify(review()))).status, 503);
    await server.write({ ...long, good: requires('v2'), mate });
    await until(async () => requiredLabel(await server.review('good', review())) === 'v2');
  });

  it('get all of their time for the check in the end', async () => {
    await using server = await startServer({
      policies: {
        ...many(3, () => ({ module: guest('loop-in-settings'), timeoutEvalSeconds: 1 })),
        good: requires('a'),
      },
    });
    for (const id of ['long-0', 'long-1', 'long-2']) {
      const { reason, message } = await server.reaches(id, { phase: 'Error' });
      assert.equal(reason, 'SettingsCheckFailed');
      assert.match(message, /fuel|did not end/);
    }
    assert.equal(await server.metric('portcullis_policy_reloads_total', { result: 'failed' }), 3);
    assert.equal(await server.metric('portcullis_policy_reloads_total', { result: 'served' }), 1);
  });

  it('serve their last good version meanwhile', async () => {
    const base = { changing: { module: guest('loop-when-asked') }, good: requires('v0') };
    await using server = await startServer({ policies: base });
    await server.write({ ...base, changing: judgedLong('x') });
    await server.reaches('changing', { phase: 'Updating' });
    assert.equal((await server.review('changing', review())).allowed, true);
    await server.write(base);
    await server.reaches('changing', { phase: 'Active' });
  });
});

describe('a source that does not answer', () => {
  it('delays readiness of a starting server no longer than the limit', async () => {
    await using source = await ModuleSource.start({ kind: 'hang' });
    await using server = await startServer({
      policies: { hangs: { module: source.url }, good: requires('app') },
      readyWaitMs: 300,
    });
    assert.equal((await server.get('/readyz')).status, 200);
    assert.equal((await server.status('hangs')).phase, 'Pending');
    const early = await server.post('/validate/hangs', JSON.stringify(review()));
    assert.deepEqual([early.status, /is being loaded/.test(early.text)], [503, true]);
    // The limit may be over before a busy machine has loaded the other policy.
    await until(
      async () => (await server.status('good')).phase === 'Active',
      () => 'the other policy to be Active',
    );
    assert.equal(requiredLabel(await server.review('good', review())), 'app');
  });

  it('at a restart is replaced by the stand-in before it times out', async () => {
    await using source = await ModuleSource.start({ kind: 'serve', bytes: await moduleBytes(guest('accept')) });
    const policies = { p: { module: source.url }, good: requires('app') };
    await using first = await startServer({ policies });
    const { serving } = await first.status('p');
    await first.stop();
    source.behaviour = { kind: 'hang' };
    await using second = await startServer({ policies, folder: first.folder, readyWaitMs: 10_000 });
    assert.equal((await second.get('/readyz')).status, 200);
    const status = await second.status('p');
    assert.deepEqual([status.phase, status.reason], ['Updating', 'Loading'], status.message);
    assert.deepEqual(status.serving, serving);
    assert.equal((await second.review('p', review())).allowed, true);
  });
});

describe('the loader', () => {
  it('that ends repeatedly loses no change of the policies file', async () => {
    using threads = new Threads();
    await using server = await startServer({ policies: { p: requires('v0') } });
    // The running thread has to end before others start.
    threads.onStart = (thread) => {
      if (thread.threadName === 'quick loader') {
        void thread.terminate();
      }
    };
    await Promise.all(threads.named('quick loader').map((thread) => thread.terminate()));
    await server.write({ p: requires('v1') });
    await until(async () => (await server.source()).error !== null);
    assert.match((await server.source()).error ?? '', /the loader ended/);
    assert.equal(requiredLabel(await server.review('p', review())), 'v0');
    threads.onStart = undefined;
    await server.server.reload();
    await until(async () => requiredLabel(await server.review('p', review())) === 'v1');
    assert.equal((await server.source()).error, null);
  });

  it('has reloaded when retried policies have served or failed', async () => {
    await using source = await ModuleSource.start({ kind: 'status', status: 500 });
    await using server = await startServer({ policies: { p: { module: source.url } } });
    assert.equal((await server.status('p')).phase, 'Error');
    source.behaviour = { kind: 'serve', bytes: await moduleBytes(guest('accept')) };
    await server.server.reload();
    assert.equal((await server.status('p')).phase, 'Active');
  });
});
