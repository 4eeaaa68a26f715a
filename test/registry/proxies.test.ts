// Registries behind a proxy, which the environment or sources.yml names.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type CommandResult, portcullis } from '../cli/command.ts';
import { LoggingProcess } from '../cli/logging-process.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { guest, moduleBytes, TestFolder } from '../server/harness.ts';
import { ConnectProxy } from './connect-proxy.ts';
import { Registry } from './registry-lab.ts';
import { PASSWORD, USER } from './registry-user.ts';

/** No name server knows it. */
const HOST = 'registry.invalid';
const REFERENCE = `registry://${HOST}/policies/accept:v1`;

describe('a registry behind a proxy', { skip: skipWithoutRegistry(), timeout: 300_000 }, () => {
  let registry: Registry;
  let proxy: ConnectProxy;
  let folder: string;
  let manifest: string;

  before(async () => {
    registry = await Registry.start();
    proxy = await ConnectProxy.start(registry);
    folder = await mkdtemp(join(tmpdir(), 'portcullis-proxies-'));
    manifest = await registry.push('policies/accept', 'v1', await moduleBytes(guest('accept')));
    const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
    await writeFile(join(folder, 'config.json'), JSON.stringify({ auths: { [HOST]: { auth } } }));
    await sources('sources.yml', {});
  });
  after(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    proxy.tunnels.length = 0;
  });

  /** Its certificate is for localhost. */
  const sources = (name: string, rest: object): Promise<void> =>
    writeFile(join(folder, name), JSON.stringify({ insecure_sources: [HOST], ...rest }));
  const flags = (file = 'sources.yml'): string[] => [
    '--sources-path',
    join(folder, file),
    '--docker-config-json-path',
    join(folder, 'config.json'),
  ];
  const digest = (env: Readonly<Record<string, string>>, file?: string): Promise<CommandResult> =>
    portcullis(['digest', REFERENCE, ...flags(file)], { env });

  for (const [what, env] of [
    ['HTTPS_PROXY', () => ({ HTTPS_PROXY: `http://${proxy.host}` })],
    ['https_proxy, without a scheme', () => ({ https_proxy: proxy.host })],
    ['HTTPS_PROXY, beside NO_PROXY for others', () => ({ HTTPS_PROXY: proxy.host, NO_PROXY: '10.0.0.0/8,.svc' })],
  ] as const) {
    it(`is reached through it by ${what}`, async () => {
      const { stdout, stderr } = await digest(env());
      assert.equal(stdout, `registry://${HOST}/policies/accept@${manifest}\n`, stderr);
      assert.deepEqual(new Set(proxy.tunnels), new Set([`${HOST}:443`]));
    });
  }

  it('is reached without it if NO_PROXY, or an empty variable, says so; this machine always is', async () => {
    for (const env of [{ HTTPS_PROXY: proxy.host, NO_PROXY: 'a.test, invalid' }, { HTTPS_PROXY: '' }]) {
      const { code, stderr } = await digest(env);
      assert.equal(code, 1);
      assert.match(stderr, /cannot be reached \(E/);
    }
    const local = await portcullis(['digest', `registry://${registry.host}/policies/accept:v1`, ...flags()], {
      env: { HTTPS_PROXY: proxy.host },
    });
    assert.match(local.stderr, /DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED|UNABLE_TO/);
    assert.deepEqual(proxy.tunnels, []);
  });

  it('is reached through that of sources.yml, whatever the environment names', async () => {
    await sources('proxies.yml', { proxies: { https_proxy: `http://${proxy.host}` } });
    const { stdout, stderr } = await digest({ HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '*' }, 'proxies.yml');
    assert.match(stdout, new RegExp(`@${manifest}\n$`), stderr);
    await sources('none.yml', { proxies: { https_proxy: `http://${proxy.host}`, no_proxy: 'invalid' } });
    assert.match((await digest({}, 'none.yml')).stderr, /cannot be reached \(E/);
  });

  it('is not reached past a proxy that is down or refuses, and the message names the proxy', async () => {
    proxy.isOpen = false;
    try {
      for (const [host, code] of [
        [proxy.host, 'ERR_PROXY_TUNNEL'],
        ['127.0.0.1:9', 'ECONNREFUSED'],
      ] as const) {
        const { stderr } = await digest({ HTTPS_PROXY: `http://joe:s3cr3t@${host}` });
        assert.match(stderr, new RegExp(`cannot be reached through the proxy \\(${code}\\): check the proxy`));
        assert.doesNotMatch(stderr, /s3cr3t/);
      }
    } finally {
      proxy.isOpen = true;
    }
  });

  it('is not reached past a proxy of another kind, whose password no message shows', async () => {
    const { code, stderr } = await digest({ HTTPS_PROXY: 'socks5://joe:s3cr3t@127.0.0.1:1080' });
    assert.equal(code, 1);
    assert.match(stderr, /the proxy of the environment is not supported: expected a URL http:\/\/host:port/);
    assert.doesNotMatch(stderr, /s3cr3t/);
  });

  for (const [what, withFlags, expected] of [
    ['names the proxy', true, [1, 0]],
    // It does not trust the certificate then.
    ['names the proxy, also without other settings', false, [0, 1]],
  ] as const) {
    it(`is reached by a policy server whose environment ${what}`, async () => {
      await using files = await TestFolder.create();
      await files.write({ p: { module: REFERENCE } });
      const data = ['--policies', files.policiesFile, '--policies-download-dir', files.dataDir];
      const ports = ['--addr', '127.0.0.1', '--port', '0', '--readiness-probe-port', '0'];
      const args = ['serve', ...data, ...ports, ...(withFlags ? flags() : [])];
      await using server = new LoggingProcess(args, { HTTPS_PROXY: proxy.host });
      const { active, failed } = await server.says('policy server ready');
      assert.deepEqual([active, failed], expected);
      assert.ok(proxy.tunnels.length > 0);
    });
  }
});
