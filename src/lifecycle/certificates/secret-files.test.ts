import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { ensureLocalCertificates } from '../../control/certificates/index.ts';
import { replaceFiles } from './atomic-folder.ts';
import { SecretFiles } from './secret-files.ts';
import { servedCertificateFault } from './served-certificate.ts';
import { SecretsScene, until } from './testing/secrets-scene.ts';

const secret = 'portcullis-controller-webhook';

describe('SecretFiles', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'secret-files-'));
  });
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it('writes the files of a complete Secret for its own user, updates them, and keeps them after a deletion', async () => {
    await using scene = await SecretsScene.open();
    const { cluster, namespace } = scene;
    const at = join(folder, 'follow');
    const files = new SecretFiles({ cluster, namespace, secret, folder: at, log: pino({ level: 'silent' }) });
    const stop = new AbortController();
    const running = files.start(stop.signal);
    let isReady = false;
    void files.ready.then(() => (isReady = true));
    await scene.put(secret, { 'tls.crt': 'half' });
    await scene.put(secret, { 'tls.crt': 'c1', 'tls.key': 'k1' });
    assert.equal(isReady, false);
    await scene.put(secret, { 'tls.crt': 'c1', 'tls.key': 'k1', 'ca.crt': 'a1', other: 'no file' });
    await files.ready;
    const read = (key: string): string => readFileSync(join(at, key), 'utf8');
    assert.deepEqual(['tls.crt', 'tls.key', 'ca.crt'].map(read), ['c1', 'k1', 'a1']);
    assert.equal(statSync(join(at, 'tls.key')).mode & 0o777, 0o600);
    assert.equal(statSync(at).mode & 0o777, 0o700);
    await scene.put(secret, { 'tls.crt': 'c2', 'tls.key': 'k2', 'ca.crt': 'a2' });
    await until(() => read('ca.crt') === 'a2');
    assert.deepEqual(['tls.crt', 'tls.key'].map(read), ['c2', 'k2']);
    await scene.put(secret, { 'tls.crt': '', 'tls.key': 'k3', 'ca.crt': 'a3' });
    await scene.delete(secret);
    await scene.put(secret, { 'tls.crt': 'c4', 'tls.key': 'k4', 'ca.crt': 'a4' });
    await until(() => read('ca.crt') === 'a4');
    stop.abort();
    await running;
    assert.equal(read('tls.crt'), 'c4');
    assert.equal(readdirSync(at).filter((name) => name.startsWith('..generation-')).length, 2);
  });

  it('waits for a usable Secret, and keeps the files when the Secret becomes unusable', async () => {
    await using scene = await SecretsScene.open();
    const { cluster, namespace } = scene;
    const at = join(folder, 'fault');
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line) => void lines.push(line) });
    const fault = servedCertificateFault;
    const files = new SecretFiles({ cluster, namespace, secret, folder: at, fault, log });
    const stop = new AbortController();
    const running = files.start(stop.signal);
    let isReady = false;
    void files.ready.then(() => (isReady = true));
    const { certFile, keyFile, caFile, controlKeyFile } = await ensureLocalCertificates(join(folder, 'pki'));
    const [cert, key, ca, other] = [certFile, keyFile, caFile, controlKeyFile].map((file) =>
      readFileSync(file, 'utf8'),
    );
    const usable = { 'tls.crt': cert ?? '', 'tls.key': key ?? '', 'ca.crt': ca ?? '' };
    for (const [change, reason] of [
      [{ 'tls.crt': 'nonsense' }, /the certificate in tls\.crt cannot be used/],
      [{ 'tls.key': other ?? '' }, /the key in tls\.key does not belong to the certificate/],
      [{ 'ca.crt': 'nonsense' }, /ca\.crt contains no certificate/],
    ] as const) {
      await scene.put(secret, { ...usable, ...change });
      await until(() => lines.some((line) => reason.test(line)));
    }
    assert.equal(isReady, false);
    assert.equal(files.isCurrent, false);
    await scene.put(secret, usable);
    await files.ready;
    assert.equal(files.isCurrent, true);
    lines.length = 0;
    await scene.put(secret, { 'tls.crt': 'broken again' });
    await until(() => lines.length > 0);
    assert.equal(files.isCurrent, false);
    assert.equal(readFileSync(join(at, 'tls.crt'), 'utf8'), cert);
    stop.abort();
    await running;
  });

  it('fails when the first write fails', async () => {
    await using scene = await SecretsScene.open();
    const { cluster, namespace } = scene;
    const at = join(folder, 'a-file');
    writeFileSync(at, '');
    await scene.put(secret, { 'tls.crt': 'c1', 'tls.key': 'k1', 'ca.crt': 'a1' });
    const files = new SecretFiles({ cluster, namespace, secret, folder: at, log: pino({ level: 'silent' }) });
    await assert.rejects(files.start(new AbortController().signal), { code: 'EEXIST' });
  });

  it('replaces plain files, and removes other files', () => {
    const at = join(folder, 'plain');
    replaceFiles(at, new Map([['one', '1']]));
    writeFileSync(join(at, 'two'), 'plain');
    replaceFiles(at, new Map([['two', '2']]));
    assert.equal(readFileSync(join(at, 'two'), 'utf8'), '2');
    assert.deepEqual(
      readdirSync(at).filter((name) => !name.startsWith('..')),
      ['two'],
    );
  });
});
