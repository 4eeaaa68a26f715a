import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { ExecPlugin } from './exec-plugin.ts';
import type { ExecPluginConfig, ExecPluginOptions } from './exec-plugin.ts';
import { loadKubeconfig } from './kubeconfig.ts';
import { TemporaryFolder } from './testing/temporary-folder.ts';

const V1 = 'client.authentication.k8s.io/v1';

/** A plugin that runs a script of the test in its own process. */
function plugin(
  context: TestContext,
  script: string,
  config: Partial<ExecPluginConfig> = {},
  options: Partial<ExecPluginOptions> = {},
): ExecPlugin {
  const file = new TemporaryFolder(context).write('plugin.cjs', script);
  const all: ExecPluginConfig = {
    apiVersion: V1,
    command: process.execPath,
    args: [file],
    env: {},
    interactiveMode: 'Never',
    installHint: undefined,
    cluster: undefined,
    ...config,
  };
  return new ExecPlugin(all, { env: {}, ...options });
}

const prints = (credential: object): string => `console.log(${JSON.stringify(JSON.stringify(credential))})`;
const credential = (status: object): object => ({ apiVersion: V1, kind: 'ExecCredential', status });

describe('ExecPlugin', () => {
  it('returns the credentials that a program prints, and runs it once for all callers', async (context) => {
    const folder = new TemporaryFolder(context);
    const log = join(folder.path, 'log');
    const script = `require('node:fs').appendFileSync(${JSON.stringify(log)}, 'x'); ${prints(credential({ token: 'secret' }))}`;
    const source = plugin(context, script);
    assert.deepEqual(await Promise.all([source.current(), source.current()]), [
      { authorization: 'Bearer secret' },
      { authorization: 'Bearer secret' },
    ]);
    await source.current();
    assert.equal(readFileSync(log, 'utf8'), 'x');
  });

  it('passes the data of the protocol in the environment', async (context) => {
    const script = `
      const info = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
      const token = [info.kind, info.apiVersion, info.spec.interactive, info.spec.cluster.server, process.env.MINE, process.env.OUTER, process.argv[2]].join();
      console.log(JSON.stringify({ apiVersion: info.apiVersion, kind: 'ExecCredential', status: { token } }));`;
    const file = new TemporaryFolder(context).write('plugin.cjs', script);
    const config = { args: [file, 'argument'], env: { MINE: 'mine' }, cluster: { server: 'https://x' } };
    const source = plugin(context, '', config, { env: { OUTER: 'outer', MINE: 'hidden' } });
    const { authorization } = await source.current();
    assert.equal(authorization, `Bearer ExecCredential,${V1},false,https://x,mine,outer,argument`);
  });

  it('runs again when the credentials expired or were rejected', async (context) => {
    const expires = '2026-01-01T00:10:00Z';
    const script = `console.log(JSON.stringify({ apiVersion: '${V1}', kind: 'ExecCredential', status: { token: String(process.hrtime.bigint()), expirationTimestamp: '${expires}' } }))`;
    let now = Date.parse('2026-01-01T00:00:00Z');
    const source = plugin(context, script, {}, { now: () => now });
    const first = await source.current();
    assert.equal(await source.current(), first);
    assert.equal(source.dropRefused(first), true);
    const second = await source.current();
    assert.notDeepEqual(second, first);
    // The rejected credentials are not the cached ones: another request was faster.
    source.dropRefused(first);
    assert.equal(await source.current(), second);
    now = Date.parse(expires);
    assert.notDeepEqual(await source.current(), second);
  });

  it('returns certificates', async (context) => {
    const status = { clientCertificateData: 'cert', clientKeyData: 'key' };
    assert.deepEqual(await plugin(context, prints(credential(status))).current(), {
      clientCertificate: { cert: 'cert', key: 'key' },
    });
  });

  for (const [name, script, expected] of [
    [
      'fails',
      `console.error('no session: log in'); process.exit(3)`,
      /expected exit code 0, got 3 \(stderr: no session: log in\); log in again/,
    ],
    ['prints no JSON', `console.log('hello')`, /expected an ExecCredential in JSON/],
    [
      'prints another version',
      prints({ ...credential({ token: 'x' }), apiVersion: 'client.authentication.k8s.io/v1beta1' }),
      /expected an ExecCredential of .*\/v1, got ExecCredential of .*v1beta1/,
    ],
    ['gives nothing', prints(credential({})), /expected status\.token or status\.clientCertificateData, got neither/],
    ['gives half a certificate', prints(credential({ clientCertificateData: 'x' })), /together, got one of them/],
    [
      'names no time',
      prints(credential({ token: 'x', expirationTimestamp: 'soon' })),
      /expected a time in status\.expirationTimestamp, got "soon"/,
    ],
    [
      'prints without end',
      `const write = () => process.stdout.write('x'.repeat(65536), write); write()`,
      /expected at most 1048576 bytes of output, got more/,
    ],
    [
      'does not end',
      `console.error('waiting'); setInterval(() => {}, 1000)`,
      /expected an end within 400 ms, got none/,
    ],
  ] as const) {
    it(`reports that the program ${name}, and retries the next time`, async (context) => {
      const source = plugin(context, script, {}, name === 'does not end' ? { timeoutMs: 400 } : {});
      for (let attempt = 0; attempt < (name === 'fails' ? 2 : 1); attempt += 1) {
        await assert.rejects(source.current(), (error) => {
          assert.ok(error instanceof Error);
          assert.match(error.message, expected);
          return 'code' in error && error.code === 'credentials-failed';
        });
      }
    });
  }

  it('shows the install hint for a missing program', async (context) => {
    const source = plugin(context, '', { command: 'no-such-plugin', installHint: 'install it with: get plugin' });
    await assert.rejects(
      source.current(),
      /exec plugin "no-such-plugin": it does not start \(.*ENOENT.*\); install it with: get plugin/,
    );
  });

  it('does not run a program that needs a terminal without one', async (context) => {
    const source = plugin(context, prints(credential({ token: 'x' })), { interactiveMode: 'Always' });
    await assert.rejects(source.current(), /expected a terminal/);
  });

  it('is configured by a kubeconfig', async (context) => {
    const folder = new TemporaryFolder(context);
    folder.write(
      'bin/plugin',
      `#!${process.execPath}\nconst { spec } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);\nconsole.log(JSON.stringify({ apiVersion: '${V1}beta1', kind: 'ExecCredential', status: { token: spec.cluster.server + spec.cluster.config.audience } }))`,
      0o700,
    );
    const config = folder.write(
      'config',
      `
current-context: dev
contexts: [{name: dev, context: {cluster: one, user: me}}]
clusters:
- name: one
  cluster:
    server: https://127.0.0.1:6443
    extensions:
    - {name: client.authentication.k8s.io/exec, extension: {audience: "#me"}}
users:
- name: me
  user:
    exec: {apiVersion: ${V1}beta1, command: ./bin/plugin, provideClusterInfo: true}
`,
    );
    const { connection } = await loadKubeconfig({ paths: [config], env: {} });
    assert.deepEqual(await connection.credentials?.current(), { authorization: 'Bearer https://127.0.0.1:6443#me' });
  });
});
