// Changes of the policies file under load: good ones serve at once, bad ones never do.
import assert from 'node:assert/strict';
import { copyFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';
import {
  example,
  guest,
  type Policies,
  requiredLabel,
  requires,
  review,
  startServer,
  type TestServer,
  until,
} from './harness.ts';

/** The label that the policy requires, the same in several answers. */
async function labelNow(server: TestServer, id: string): Promise<string | undefined> {
  const answers = await Promise.all(Array.from({ length: 6 }, () => server.review(id, review())));
  const labels = new Set(answers.map(requiredLabel));
  assert.equal(labels.size, 1, `all workers answer alike: ${[...labels].join()}`);
  return [...labels][0];
}

describe('a change of the policies file', () => {
  let server: TestServer;
  const base = { other: requires('untouched'), changing: requires('v0') };
  before(async () => {
    server = await startServer({ policies: base });
  });
  after(() => server[Symbol.asyncDispose]());

  async function serves(id: string, label: string): Promise<void> {
    await until(
      async () => requiredLabel(await server.review(id, review())) === label,
      () => `${id} to require ${label}`,
    );
    assert.equal(await labelNow(server, id), label);
  }

  it('of settings serves', async () => {
    const before = await server.status('changing');
    await server.write({ ...base, changing: requires('v1') });
    await serves('changing', 'v1');
    const now = await server.reaches('changing', { phase: 'Active' });
    assert.notEqual(now.serving?.version, before.serving?.version);
    assert.notEqual(now.serving?.settingsHash, before.serving?.settingsHash);
    assert.deepEqual(now.serving?.modules, before.serving?.modules);
    assert.equal(now.desired?.version, now.serving?.version);
  });

  it('of the module serves', async () => {
    const before = await server.status('changing');
    await server.write({ ...base, changing: { module: example('pod-privileged') } });
    await until(async () => (await server.review('changing', review())).allowed);
    const now = await server.reaches('changing', { phase: 'Active' });
    assert.notDeepEqual(now.serving?.modules, before.serving?.modules);
    await server.write(base);
    await serves('changing', 'v0');
  });

  it('to a group and back serves', async () => {
    await server.write({
      ...base,
      changing: { expression: 'a()', message: 'grouped', policies: { a: requires('x') } },
    });
    await until(async () => (await server.review('changing', review())).status?.message === 'grouped');
    assert.equal((await server.reaches('changing', { phase: 'Active' })).kind, 'group');
    await server.write(base);
    await serves('changing', 'v0');
  });

  it('adds and removes policies', async () => {
    await server.write({ ...base, added: requires('new') });
    await server.reaches('added', { phase: 'Active' });
    assert.equal(await labelNow(server, 'added'), 'new');
    await server.write(base);
    const body = JSON.stringify(review());
    await until(async () => (await server.post('/validate/added', body)).status === 404);
    assert.equal((await server.get('/policies/added')).status, 404);
    await server.write({ ...base, added: requires('again') });
    await until(async () => (await server.post('/validate/added', body)).status === 200);
    assert.equal(await labelNow(server, 'added'), 'again');
    await server.write(base);
  });

  it('that changes nothing loads nothing', async () => {
    await serves('changing', 'v0');
    const before = await server.status('changing');
    const loadedAt = (await server.source()).loadedAt;
    await server.write(`${JSON.stringify(base)}\n\n`);
    await until(async () => (await server.source()).loadedAt !== loadedAt);
    assert.deepEqual(await server.status('changing'), before);
  });

  it('written in place serves', async () => {
    await writeFile(server.folder.policiesFile, JSON.stringify({ ...base, changing: requires('in-place') }));
    await serves('changing', 'in-place');
    await server.write(base);
    await serves('changing', 'v0');
  });

  it('is read after the file was missing', async () => {
    const aside = `${server.folder.policiesFile}.aside`;
    await rename(server.folder.policiesFile, aside);
    await until(async () => (await server.source()).error !== null);
    assert.equal(await labelNow(server, 'changing'), 'v0');
    await rename(aside, server.folder.policiesFile);
    await until(async () => (await server.source()).error === null);
    assert.equal(await labelNow(server, 'changing'), 'v0');
  });

  it('in quick succession ends with the last version', async () => {
    for (let version = 0; version < 25; version += 1) {
      await server.write({ ...base, changing: requires(`quick-${version}`) });
    }
    await serves('changing', 'quick-24');
    await server.reaches('changing', { phase: 'Active' });
    await server.write(base);
    await serves('changing', 'v0');
  });

  describe('that is bad', () => {
    let folder: string;
    before(async () => {
      folder = server.folder.path;
      await writeFile(join(folder, 'text.wasm'), 'This is not WebAssembly.');
      await copyFile(fileURLToPath(example('pod-privileged')), join(folder, 'truncated.wasm'));
      await truncate(join(folder, 'truncated.wasm'), 10_000);
      await writeFile(join(folder, 'huge.wasm'), Buffer.from('0061736d01000000', 'hex'));
      await truncate(join(folder, 'huge.wasm'), 65 * 1024 * 1024);
    });

    const bad: Readonly<Record<string, { entry: (path: string) => unknown; reason: string; message: RegExp }>> = {
      'settings that the policy refuses': {
        entry: () => ({ module: example('required-labels'), settings: { labels: 'none' } }),
        reason: 'InvalidSettings',
        message: /labels: expected a list/,
      },
      'settings that the policy does not know': {
        entry: () => ({ module: example('required-labels'), settings: { labels: ['a'], other: 1 } }),
        reason: 'InvalidSettings',
        message: /unknown setting "other"/,
      },
      'a missing module': {
        entry: (path) => ({ module: `file://${path}/none.wasm` }),
        reason: 'FetchFailed',
        message: /none\.wasm/,
      },
      'a module that is not WebAssembly': {
        entry: (path) => ({ module: `file://${path}/text.wasm` }),
        reason: 'InvalidModule',
        message: /WebAssembly/,
      },
      'a truncated module': {
        entry: (path) => ({ module: `file://${path}/truncated.wasm` }),
        reason: 'InvalidModule',
        message: /./,
      },
      'a module that is too large': {
        entry: (path) => ({ module: `file://${path}/huge.wasm` }),
        reason: 'InvalidModule',
        message: /too large/,
      },
      'a module of another protocol': {
        entry: () => ({ module: guest('protocol-v2') }),
        reason: 'InvalidModule',
        message: /protocol/,
      },
      'a module that needs a newer server': {
        entry: () => ({ module: guest('minimum-version-99') }),
        reason: 'UnsupportedVersion',
        message: /99\.0\.0/,
      },
      'a module with another digest': {
        entry: () => ({ module: `${guest('accept')}@sha256:${'0'.repeat(64)}` }),
        reason: 'DigestMismatch',
        message: /expected sha256:0000/,
      },
      'a module of a registry that is down': {
        entry: () => ({ module: 'registry://localhost:1/policy:v1' }),
        reason: 'FetchFailed',
        message: /registry:\/\/localhost:1\/policy:v1 cannot be reached/,
      },
      'a module reference of no known form': {
        entry: () => ({ module: 'policy.wasm' }),
        reason: 'InvalidDefinition',
        message: /policy\.wasm/,
      },
      'an unknown key': {
        entry: () => requires('v9', { policyMod: 'monitor' }),
        reason: 'InvalidDefinition',
        message: /line \d+, column \d+: unknown key "policyMod".*policyMode/,
      },
      'several mistakes': {
        entry: () => requires('v9', { one: 1, two: 2 }),
        reason: 'InvalidDefinition',
        message: /"one".*"two"/s,
      },
      'a value of the wrong type': {
        entry: () => requires('v9', { allowedToMutate: 'yes' }),
        reason: 'InvalidDefinition',
        message: /expected true or false/,
      },
      'no module': { entry: () => ({ settings: {} }), reason: 'InvalidDefinition', message: /module/ },
      'a list': { entry: () => [], reason: 'InvalidDefinition', message: /mapping/ },
      'an expression that does not parse': {
        entry: () => ({ expression: 'a( &&', message: 'm', policies: { a: requires('x') } }),
        reason: 'InvalidDefinition',
        message: /expression/,
      },
      'an expression of unknown members': {
        entry: () => ({ expression: 'b()', message: 'm', policies: { a: requires('x') } }),
        reason: 'InvalidDefinition',
        message: /b/,
      },
      'a group with a bad member': {
        entry: () => ({
          expression: 'a()',
          message: 'm',
          policies: { a: { module: example('required-labels'), settings: {} } },
        }),
        reason: 'InvalidSettings',
        message: /changing\/a: /,
      },
      'a guest that traps when it checks settings': {
        entry: () => ({ module: guest('trap-in-settings') }),
        reason: 'SettingsCheckFailed',
        message: /./,
      },
      'a guest that loops when it checks settings': {
        entry: () => ({ module: guest('loop-in-settings'), timeoutEvalSeconds: 1 }),
        reason: 'SettingsCheckFailed',
        message: /./,
      },
      'a guest that loops when it starts': {
        entry: () => ({ module: guest('loop-in-init'), timeoutEvalSeconds: 1 }),
        reason: 'InvalidModule',
        message: /./,
      },
    };
    for (const [what, { entry, reason, message }] of Object.entries(bad)) {
      it(`because of ${what} leaves the last good version serving, and reports why`, async () => {
        const good = await server.reaches('changing', { phase: 'Active', reason: 'Serving' });
        await server.write({ ...base, changing: entry(folder) });
        const status = await server.reaches('changing', { phase: 'Degraded' });
        assert.equal(status.reason, reason, status.message);
        assert.match(status.message, message);
        assert.deepEqual(status.serving, good.serving);
        assert.notEqual(status.desired?.version ?? null, good.serving?.version);
        if (reason === 'FetchFailed') {
          assert.ok(status.nextRetry !== null && Date.parse(status.nextRetry) > Date.parse(status.since) - 1);
        }
        assert.equal(await labelNow(server, 'changing'), 'v0');
        assert.equal(await labelNow(server, 'other'), 'untouched');
        assert.equal((await server.status('other')).phase, 'Active');
        assert.ok(!server.log.some((line) => line['level'] === 'fatal'));
        await server.write(base);
        await server.reaches('changing', { phase: 'Active', reason: 'Serving' });
        assert.equal(await labelNow(server, 'changing'), 'v0');
      });
    }

    const wholeFile: Readonly<Record<string, { text: Policies; message: RegExp }>> = {
      'is not YAML': { text: 'changing:\n  module: [\n', message: /policies\.yml:\d+:\d+/ },
      'names a policy twice': {
        text: `a:\n  module: ${guest('accept')}\na:\n  module: ${guest('accept')}\n`,
        message: /policies\.yml:3:1.*"a" twice/,
      },
      'is a list': { text: '- a\n', message: /mapping/ },
      'is text': { text: 'hello', message: /mapping/ },
      'is not UTF-8 text': { text: '\u0000\u0001\u0002', message: /./ },
      'is nested too deep': { text: `a: ${'['.repeat(50_000)}`, message: /./ },
      'has several documents': { text: 'a: {}\n---\nb: {}\n', message: /one YAML document/ },
    };
    for (const [what, { text, message }] of Object.entries(wholeFile)) {
      it(`because the file ${what} changes nothing, and reports why`, async () => {
        const before = await server.status('changing');
        await server.write(text);
        await until(async () => (await server.source()).error !== null);
        assert.match((await server.source()).error ?? '', message);
        assert.equal(await labelNow(server, 'changing'), 'v0');
        assert.deepEqual(await server.status('changing'), before);
        await server.write(base);
        await until(async () => (await server.source()).error === null);
        assert.deepEqual(await server.status('changing'), before);
      });
    }

    it('because of an id with "/" leaves out that policy only', async () => {
      await server.write({ ...base, 'a/b': requires('x'), added: requires('fine') });
      await server.reaches('added', { phase: 'Active' });
      const { reason, message } = await server.reaches('a/b', { phase: 'Error' });
      assert.equal(reason, 'InvalidDefinition');
      assert.match(message, /"\/"/);
      assert.equal(await labelNow(server, 'other'), 'untouched');
      await server.write(base);
      await until(async () => (await server.get('/policies/a%2Fb')).status === 404);
    });

    it('reports a policy without a good version, until it has one', async () => {
      const entry = { module: `file://${folder}/later.wasm`, policyMode: 'monitor' };
      await server.write({ ...base, fresh: entry, lenient: { ...entry, failurePolicy: 'Ignore' } });
      const { serving } = await server.reaches('fresh', { phase: 'Error', reason: 'FetchFailed' });
      assert.equal(serving, null);
      await server.reaches('lenient', { phase: 'Error' });
      const rejected = await server.review('fresh', review());
      assert.deepEqual([rejected.allowed, rejected.status?.code], [false, 500]);
      const admitted = await server.review('lenient', review());
      assert.equal(admitted.allowed, true);
      assert.equal(admitted.warnings?.length, 1);
      // Retried without a change of the file.
      await copyFile(fileURLToPath(guest('accept')), join(folder, 'later.wasm'));
      await server.reaches('fresh', { phase: 'Active' });
      await server.reaches('lenient', { phase: 'Active' });
      assert.equal((await server.review('fresh', review())).allowed, true);
      assert.equal((await server.review('lenient', review())).warnings, null);
      await rm(join(folder, 'later.wasm'));
      await server.write(base);
    });
  });

  it('is not lost while another policy loops in the check of its settings', async () => {
    await server.write({ ...base, looping: { module: guest('wasi-loop'), timeoutEvalSeconds: 2 } });
    await server.reaches('looping', { phase: 'Pending' });
    await server.write({ ...base, changing: requires('meanwhile') });
    await serves('changing', 'meanwhile');
    assert.equal((await server.source()).error, null);
    await server.write(base);
    await serves('changing', 'v0');
  });

  it('fails no review and mixes no versions in 50 swaps under load', async () => {
    let isOver = false;
    let reviews = 0;
    /** The newest version in any client's answers. */
    let newest = 0;
    const version = (label: string | undefined): number => Number(/^swap-(\d+)$/.exec(label ?? '')?.[1] ?? Number.NaN);
    await server.write({ ...base, changing: requires('swap-0') });
    await serves('changing', 'swap-0');
    const client = async (): Promise<void> => {
      while (!isOver) {
        const known = newest;
        const answered = version(requiredLabel(await server.review('changing', review())));
        assert.ok(answered >= known, `expected version ${known} or newer, got ${answered}`);
        newest = Math.max(newest, answered);
        reviews += 1;
      }
    };
    const clients = Array.from({ length: 3 }, client);
    try {
      for (let swap = 1; swap <= 50; swap += 1) {
        await server.write({ ...base, changing: requires(`swap-${swap}`) });
        await until(
          () => newest >= swap,
          () => `version ${swap}, newest ${newest}`,
        );
      }
    } finally {
      isOver = true;
      await Promise.all(clients);
    }
    assert.equal(newest, 50);
    assert.ok(reviews > 50);
    await server.write(base);
    await serves('changing', 'v0');
  });
});
