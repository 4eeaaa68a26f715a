import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inClusterAccess } from './in-cluster.ts';
import { CachedCredentials } from './cached-credentials.ts';
import { TemporaryFolder } from './testing/temporary-folder.ts';

const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };

describe('inClusterAccess', () => {
  it('uses the mounted service account', async (context) => {
    const folder = new TemporaryFolder(context);
    folder.write('token', 'abc\n');
    folder.write('ca.crt', 'ca');
    folder.write('namespace', 'shop');
    const { connection, namespace } = await inClusterAccess({ env, folder: folder.path });
    assert.equal(connection.server, 'https://10.0.0.1:443');
    assert.equal(connection.ca, 'ca');
    assert.equal(namespace, 'shop');
    assert.deepEqual(await connection.credentials?.current(), { authorization: 'Bearer abc' });
    const elsewhere = await inClusterAccess({ env: { ...env, PORTCULLIS_SERVICE_ACCOUNT_DIR: folder.path } });
    assert.equal(elsewhere.namespace, 'shop');
    const six = await inClusterAccess({ env: { ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' }, folder: folder.path });
    assert.equal(six.connection.server, 'https://[fd00::1]:443');
  });

  it('names missing files', async (context) => {
    const folder = new TemporaryFolder(context);
    await assert.rejects(inClusterAccess({ env: {}, folder: folder.path }), { code: 'kubeconfig-missing' });
    await assert.rejects(inClusterAccess({ env, folder: folder.path }), {
      code: 'credentials-failed',
      message: /token.*there is no such file or folder/,
    });
    folder.write('token', ' \n');
    await assert.rejects(inClusterAccess({ env, folder: folder.path }), {
      message: /expected one token, got an empty file/,
    });
    folder.write('token', 'abc');
    await assert.rejects(inClusterAccess({ env, folder: folder.path }), {
      message: /ca\.crt.*automountServiceAccountToken/,
    });
  });
});

describe('CachedCredentials', () => {
  it('reads again after a while, and at once after a failure', async () => {
    let now = 0;
    let reads = 0;
    const source = new CachedCredentials(
      'a file',
      () =>
        ++reads === 1 ? Promise.reject(new Error('not there yet')) : Promise.resolve({ authorization: String(reads) }),
      60_000,
      () => now,
    );
    await assert.rejects(source.current(), /not there yet/);
    assert.deepEqual(await source.current(), { authorization: '2' });
    now = 59_999;
    assert.deepEqual(await source.current(), { authorization: '2' });
    now = 60_000;
    assert.deepEqual(await source.current(), { authorization: '3' });
  });
});
