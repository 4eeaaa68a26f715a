import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { credentialsFor, type RegistryCredentials } from './docker-config.ts';

const joe = { kind: 'password', username: 'joe', password: 'pa:ss' } as const;
const auth = Buffer.from('joe:pa:ss').toString('base64');
const other = { username: 'other', password: 'x' };

let folder: TemporaryFolder;

async function credentials(config: unknown, host = 'r.example.com', repository = 'a/b'): Promise<unknown> {
  const path = join(folder.path, 'config.json');
  await writeFile(path, typeof config === 'string' ? config : JSON.stringify(config));
  return await credentialsFor(path, host, repository, new AbortController().signal);
}

describe('credentialsFor', () => {
  before(async () => {
    folder = await TemporaryFolder.create();
  });
  after(() => folder[Symbol.asyncDispose]());

  for (const [what, auths, expected] of [
    ['a host', { 'r.example.com': { auth } }, joe],
    ['a URL', { 'https://r.example.com/v1/': { auth } }, joe],
    ['user and password', { 'r.example.com': { username: 'joe', password: 'pa:ss' } }, joe],
    ['the longest path', { 'r.example.com': other, 'r.example.com/a': { auth } }, joe],
    ['no path of another repository', { 'r.example.com/a/bc': other }, undefined],
    [
      'no other host',
      { 'evil-r.example.com': other, 'example.com': other, 'r.example.com.evil.com': other },
      undefined,
    ],
    ['an identity token', { 'r.example.com': { auth, identitytoken: 't' } }, { kind: 'refresh-token', token: 't' }],
    ['a registry token', { 'r.example.com': { registrytoken: 't' } }, { kind: 'bearer', token: 't' }],
    ['nothing in an entry', { 'r.example.com': {} }, undefined],
    ['a prototype', { __proto__: { 'r.example.com': other } }, undefined],
  ] as const) {
    it(`reads ${what}`, async () => assert.deepEqual(await credentials({ auths }), expected));
  }

  it('knows the key of Docker Hub', async () => {
    assert.deepEqual(await credentials({ auths: { 'https://index.docker.io/v1/': { auth } } }, 'docker.io'), joe);
  });

  it('has none without a file', async () => {
    const { signal } = new AbortController();
    assert.equal(await credentialsFor(join(folder.path, 'none.json'), 'h', 'r', signal), undefined);
  });

  for (const [what, config] of [
    ['text', 'secret-password'],
    ['a list', []],
    ['an entry without a colon', { auths: { 'r.example.com': { auth: Buffer.from('secret').toString('base64') } } }],
    ['a token with a line break', { auths: { 'r.example.com': { registrytoken: 'secret\n' } } }],
    ['a token with a letter that no header has', { auths: { 'r.example.com': { registrytoken: 'secr\u20act' } } }],
    ['a helper with a path', { credsStore: '../evil' }],
    ['a helper that is not there', { credsStore: 'none-of-this-name' }],
  ] as const) {
    it(`refuses ${what}, without its content`, async () => {
      await assert.rejects(credentials(config), (error: Error & { code: string }) => {
        assert.equal(error.code, 'credentials-invalid');
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
    });
  }

  describe('with a credential helper', () => {
    const path = process.env['PATH'];
    after(() => {
      process.env['PATH'] = path;
    });

    async function helper(script: string): Promise<void> {
      const file = join(folder.path, 'docker-credential-test');
      await writeFile(file, `#!/bin/sh\n${script}\n`);
      await chmod(file, 0o755);
      process.env['PATH'] = `${folder.path}${delimiter}${path}`;
    }

    for (const [what, script, expected] of [
      ['a password', 'printf \'{"Username":"%s","Secret":"s"}\' "$(cat)-$1"', 'r.example.com-get'],
      ['nothing', 'echo "credentials not found in native keychain"; exit 1', undefined],
    ] as const) {
      it(`takes ${what}`, async () => {
        await helper(script);
        const found = (await credentials({ credHelpers: { 'r.example.com': 'test' } })) as RegistryCredentials;
        assert.deepEqual(found, expected && { kind: 'password', username: expected, password: 's' });
      });
    }

    it('takes a refresh token', async () => {
      await helper('echo \'{"Username":"<token>","Secret":"t"}\'');
      assert.deepEqual(await credentials({ credsStore: 'test' }), { kind: 'refresh-token', token: 't' });
    });

    for (const [what, script] of [
      ['fails', 'echo secret; exit 2'],
      ['writes text', 'echo secret'],
      ['writes without end', 'while :; do echo secret secret secret; done'],
    ] as const) {
      it(`says when it ${what}`, async () => {
        await helper(script);
        await assert.rejects(credentials({ credsStore: 'test' }), (error: Error & { code: string }) => {
          assert.equal(error.code, 'credentials-invalid');
          assert.doesNotMatch(error.message, /secret/);
          return true;
        });
      });
    }
  });
});
