// `portcullis serve` as a process: its signals.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { guest, requires, TestFolder } from '../server/harness.ts';
import { eventually } from '../cluster/eventually.ts';
import { portcullis, ROOT } from './command.ts';
import { LoggingProcess } from './logging-process.ts';

/** The serial number of a server's certificate. */
async function serialNumber(url: string): Promise<string> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { serialNumber: serial } = socket.getPeerCertificate();
  socket.destroy();
  return serial;
}

/** Until a thread has worked for as long as no deadline allows. */
const PATIENCE = { timeoutMs: 60_000 };

describe('portcullis serve', () => {
  it('ends with the position of a mistake in what it verifies signatures by', async () => {
    await using folder = await TestFolder.create();
    const [config, trust] = [join(folder.path, 'verification.yml'), join(folder.path, 'trust.json')];
    await writeFile(config, 'apiVersion: v1\nallOf:\n  - kind: githubAction\n    ownr: kubewarden\n');
    await writeFile(trust, '{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}');
    for (const [args, env, message] of [
      [['--verification-path', config], {}, /verification\.yml:4:\d+: .*ownr/],
      [['--sigstore-trust-config', trust], {}, /trust\.json:1:\d+: /],
      [[], { KUBEWARDEN_VERIFICATION_CONFIG_PATH: config }, /verification\.yml:4:\d+: /],
      [[], { KUBEWARDEN_SIGSTORE_TRUST_CONFIG_PATH: `${trust}.none` }, /trust\.json\.none cannot be read/],
    ] as const) {
      const { code, stderr } = await portcullis(['serve', '--policies', folder.policiesFile, ...args], { env });
      assert.equal(code, 1, stderr);
      assert.match(stderr, message);
    }
  });

  it('names the command that serves manifests, for a file and for a folder with some', async () => {
    await using folder = await TestFolder.create();
    const manifests = join(folder.path, 'policy.yaml');
    await writeFile(manifests, 'apiVersion: policies.kubewarden.io/v1\nkind: ClusterAdmissionPolicy\n---\na: {}\n');
    const ports = ['--addr', '127.0.0.1', '--port', '0', '--readiness-probe-port', '0'];
    const data = ['--policies-download-dir', folder.dataDir];
    await using server = new LoggingProcess(['serve', '--policies', manifests, ...data, ...ports]);
    const { error } = await server.says('policies file not used');
    assert.match(String(error), /a manifest of the kind ClusterAdmissionPolicy: .*"portcullis start --policies"/);
    const { code, stderr } = await portcullis(['serve', '--policies', folder.path, ...ports]);
    assert.equal(code, 2);
    assert.match(stderr, /is a folder: expected a policies file\n.*portcullis start --policies FOLDER/);
  });

  it('ends soon after SIGTERM where a policy keeps its threads in native code', { timeout: 120_000 }, async () => {
    await using folder = await TestFolder.create();
    const validations = [{ expression: "object.metadata.name != 'stuck in native code'" }];
    await folder.write({ good: requires('app'), stuck: { module: 'builtin:cel', settings: { validations } } });
    const data = ['--policies', folder.policiesFile, '--policies-download-dir', folder.dataDir];
    const ports = ['--addr', '127.0.0.1', '--port', '0', '--readiness-probe-port', '0'];
    const stuck = ['--import', join(ROOT, 'test/fixtures/stuck-threads.mjs')];
    await using server = new LoggingProcess(['serve', ...data, ...ports], {}, stuck);
    await eventually(async () => assert.ok(server.hasStuckThread()), PATIENCE);
    server.signal('SIGTERM');
    await server.says('stopped');
    assert.equal(await server.ended(), null, 'it ends with its thread');
  });

  it('at SIGHUP reads policies and certificates again and retries failed loads; at SIGTERM exits with 0', async () => {
    await using folder = await TestFolder.create();
    const module = join(folder.path, 'later.wasm');
    await folder.write({ good: requires('app'), later: { module: `file://${module}` } });
    const { certFile, keyFile } = folder.certificates;
    const data = ['--policies', folder.policiesFile, '--policies-download-dir', folder.dataDir];
    const ports = ['--addr', '127.0.0.1', '--port', '0', '--readiness-probe-port', '0'];
    const tls = ['--cert-file', certFile, '--key-file', keyFile];
    await using server = new LoggingProcess(['serve', ...data, ...ports, ...tls]);
    const ready = await server.says('policy server ready');
    assert.deepEqual([ready['policies'], ready['active'], ready['failed']], [2, 1, 1]);
    const url = String(ready['admission']);
    const before = await serialNumber(url);

    await cp(new URL(guest('accept')), module);
    const other = await ensureLocalCertificates(join(folder.path, 'other'));
    await cp(other.certFile, certFile);
    await cp(other.keyFile, keyFile);
    server.signal('SIGHUP');
    const reloaded = await server.says('reloaded');
    assert.deepEqual([reloaded['policies'], reloaded['failed'], reloaded['error']], [2, 0, undefined]);
    assert.notEqual(await serialNumber(url), before);

    await folder.write('good: [');
    server.signal('SIGHUP');
    assert.match(String((await server.says('reloaded'))['error']), /policies\.yml:\d+:\d+/);

    server.signal('SIGTERM');
    await server.says('stopped');
    assert.equal(await server.ended(), 0);
  });
});
