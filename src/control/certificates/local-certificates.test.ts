import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { ensureLocalCertificates } from './local-certificates.ts';
import { CONTROL_NAME } from '../replica-protocol.ts';
import { watchTls } from '../../https/index.ts';

describe('certificates', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-tls-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('for this machine have their own CA, name localhost, and private key files', async () => {
    const files = await ensureLocalCertificates(join(folder, 'pki'));
    const leaf = new X509Certificate(readFileSync(files.certFile));
    const ca = new X509Certificate(readFileSync(files.caFile));
    assert.ok(leaf.verify(ca.publicKey));
    assert.equal(leaf.checkHost('localhost'), 'localhost');
    assert.equal(leaf.checkIP('127.0.0.1'), '127.0.0.1');
    assert.ok(ca.ca && !leaf.ca);
    assert.equal(statSync(files.keyFile).mode & 0o777, 0o600);
  });

  it('for this machine are kept from one start to the next', async () => {
    const { certFile } = await ensureLocalCertificates(folder);
    const first = readFileSync(certFile, 'utf8');
    await ensureLocalCertificates(folder);
    assert.equal(readFileSync(certFile, 'utf8'), first);
  });

  it('for control ports come from the same CA, for clients and servers, and no stored key can issue more', async () => {
    const files = await ensureLocalCertificates(folder);
    const ca = new X509Certificate(readFileSync(files.caFile));
    const control = new X509Certificate(readFileSync(files.controlCertFile));
    const server = new X509Certificate(readFileSync(files.certFile));
    assert.ok(control.verify(ca.publicKey));
    assert.equal(control.checkHost(CONTROL_NAME), CONTROL_NAME);
    assert.equal(control.checkHost('localhost'), undefined);
    assert.equal(server.checkHost(CONTROL_NAME), undefined);
    assert.deepEqual(
      [control.keyUsage, server.keyUsage].map((usages) => usages.toSorted()),
      [['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'], ['1.3.6.1.5.5.7.3.1']],
    );
    assert.equal(statSync(files.controlKeyFile).mode & 0o777, 0o600);
    for (const name of readdirSync(folder).filter((file) => file.endsWith('.key'))) {
      assert.ok(!ca.checkPrivateKey(createPrivateKey(readFileSync(join(folder, name)))), name);
    }
  });

  it('are all issued again when one is missing, or a key does not match', async () => {
    const files = await ensureLocalCertificates(folder);
    for (const spoil of [
      () => rmSync(files.controlCertFile),
      () => rmSync(files.controlKeyFile),
      () => copyFileSync(files.keyFile, files.controlKeyFile),
    ]) {
      const before = readFileSync(files.caFile, 'utf8');
      spoil();
      await ensureLocalCertificates(folder);
      const ca = new X509Certificate(readFileSync(files.caFile));
      assert.notEqual(readFileSync(files.caFile, 'utf8'), before);
      for (const [certFile, keyFile] of [
        [files.certFile, files.keyFile],
        [files.controlCertFile, files.controlKeyFile],
      ] as const) {
        const leaf = new X509Certificate(readFileSync(certFile));
        assert.ok(leaf.verify(ca.publicKey) && leaf.checkPrivateKey(createPrivateKey(readFileSync(keyFile))));
      }
    }
  });

  it('are rejected when the key does not match', async () => {
    const one = await ensureLocalCertificates(join(folder, 'one'));
    const other = await ensureLocalCertificates(join(folder, 'other'));
    const listener = { reloaded: () => undefined, failed: () => undefined };
    await assert.rejects(watchTls({ certFile: one.certFile, keyFile: other.keyFile }, listener), {
      code: 'tls-invalid',
      message: /does not belong to the certificate/,
    });
    await assert.rejects(watchTls({ certFile: join(folder, 'none'), keyFile: one.keyFile }, listener), {
      code: 'tls-invalid',
      message: /ENOENT/,
    });
  });

  it('are reloaded when both files have changed; a broken file leaves the old ones in place', async () => {
    const files = await ensureLocalCertificates(join(folder, 'served'));
    const renewed = await ensureLocalCertificates(join(folder, 'renewed'));
    const events: string[] = [];
    let arrived: () => void = () => undefined;
    const watch = await watchTls(files, {
      reloaded: (options) => {
        events.push(String(options.cert) === readFileSync(renewed.certFile, 'utf8') ? 'renewed' : 'other');
        arrived();
      },
      failed: (error) => {
        events.push(error.message.includes('cannot be used') ? 'failed' : error.message);
        arrived();
      },
    });
    const next = async (act: () => void): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      arrived = resolve;
      act();
      await promise;
    };
    await next(() => writeFileSync(files.certFile, 'nonsense'));
    await next(() => {
      copyFileSync(renewed.certFile, files.certFile);
      copyFileSync(renewed.keyFile, files.keyFile);
    });
    watch.stop();
    assert.deepEqual(events, ['failed', 'renewed']);
  });
});
