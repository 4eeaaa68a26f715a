import assert from 'node:assert/strict';
import { delimiter, join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import { ClusterError } from '../errors.ts';
import type { ClusterAccess } from './in-cluster.ts';
import { loadKubeconfig } from './kubeconfig.ts';
import { testCertificate } from './testing/certificates.ts';
import { TemporaryFolder } from './testing/temporary-folder.ts';

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
}

/** A kubeconfig with one context; JSON is YAML. */
const config = ({ cluster = {}, user = {}, context = {} }: Parts): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'dev',
    contexts: [{ name: 'dev', context: { cluster: 'one', user: 'me', ...context } }],
    clusters: [{ name: 'one', cluster: { server: 'https://127.0.0.1:6443', ...cluster } }],
    users: [{ name: 'me', user }],
  });

const base64 = (text: string): string => Buffer.from(text).toString('base64');

function load(context: TestContext, text: string, files: Record<string, string> = {}): Promise<ClusterAccess> {
  const folder = new TemporaryFolder(context);
  for (const [name, content] of Object.entries(files)) {
    folder.write(name, content);
  }
  return loadKubeconfig({ paths: [folder.write('config', text)], env: {} });
}

async function authorization(access: ClusterAccess): Promise<string | undefined> {
  return (await access.connection.credentials?.current())?.authorization;
}

describe('loadKubeconfig', () => {
  it('reads the current context', async (context) => {
    const access = await load(context, config({ user: { token: 'secret' }, context: { namespace: 'shop' } }));
    assert.equal(access.connection.server, 'https://127.0.0.1:6443');
    assert.equal(access.context, 'dev');
    assert.equal(access.namespace, 'shop');
    assert.equal(await authorization(access), 'Bearer secret');
    assert.match(access.connection.origin ?? '', /^context "dev" of .*config$/);
  });

  it('reads block YAML, and another context than the current one', async (context) => {
    const text = `
current-context: dev
contexts:
- name: other
  context: {cluster: two}
clusters:
- name: two
  cluster:
    server: http://localhost:8001
    insecure-skip-tls-verify: true
`;
    const path = new TemporaryFolder(context).write('config', text);
    const access = await loadKubeconfig({ paths: [path], context: 'other', env: {} });
    assert.deepEqual(
      { ...access.connection, origin: undefined },
      { server: 'http://localhost:8001', insecureSkipTlsVerify: true, origin: undefined },
    );
    assert.equal(access.namespace, 'default');
  });

  it('merges files as kubectl does: the first entry wins', async (context) => {
    const folder = new TemporaryFolder(context);
    const first = folder.write('a', 'current-context: dev\nusers: [{name: me, user: {token: first}}]\n');
    const second = folder.write('b', config({ user: { token: 'second' } }).replace('"dev"', '"nothing"'));
    const env = { KUBECONFIG: [first, join(folder.path, 'missing'), second].join(delimiter) };
    const access = await loadKubeconfig({ env });
    assert.equal(await authorization(access), 'Bearer first');
    assert.equal(access.connection.server, 'https://127.0.0.1:6443');
  });

  it('reads the file in the home folder', async (context) => {
    const folder = new TemporaryFolder(context);
    folder.write('.kube/config', config({}));
    assert.equal((await loadKubeconfig({ env: { HOME: folder.path } })).context, 'dev');
  });

  it('reads a password and the impersonated user', async (context) => {
    const user = {
      username: 'me',
      password: 'pass:word',
      as: 'bob',
      'as-groups': ['a'],
      'as-user-extra': { k: ['v'] },
    };
    const { connection } = await load(context, config({ user }));
    assert.deepEqual(await connection.credentials?.current(), {
      authorization: `Basic ${base64('me:pass:word')}`,
      impersonate: { user: 'bob', groups: ['a'], extra: { k: ['v'] } },
    });
  });

  it('reads a token file again when the token was rejected', async (context) => {
    const folder = new TemporaryFolder(context);
    const path = folder.write('config', config({ user: { tokenFile: 'token' } }));
    folder.write('token', 'one\n');
    const { connection } = await loadKubeconfig({ paths: [path], env: {} });
    const source = connection.credentials;
    assert.deepEqual(await source?.current(), { authorization: 'Bearer one' });
    folder.write('token', 'two\n');
    assert.deepEqual(await source?.current(), { authorization: 'Bearer one' });
    assert.equal(source?.dropRefused(await source.current()), true);
    assert.deepEqual(await source?.current(), { authorization: 'Bearer two' });
  });

  it('reads certificates from data, and from files relative to the kubeconfig', async (context) => {
    const { cert, key } = await testCertificate('me');
    const data = await load(
      context,
      config({
        cluster: { 'certificate-authority-data': base64(cert) },
        user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) },
      }),
    );
    assert.equal(data.connection.ca, cert);
    assert.deepEqual(await data.connection.credentials?.current(), { clientCertificate: { cert, key } });
    const files = await load(
      context,
      config({
        cluster: { 'certificate-authority': 'pki/ca.crt' },
        user: { 'client-certificate': 'pki/me.crt', 'client-key': 'pki/me.key' },
      }),
      { 'pki/ca.crt': cert, 'pki/me.crt': cert, 'pki/me.key': key },
    );
    assert.equal(files.connection.ca, cert);
    assert.deepEqual(await files.connection.credentials?.current(), { clientCertificate: { cert, key } });
  });

  it('rejects a key that does not match its certificate', async (context) => {
    const [one, two] = await Promise.all([testCertificate('one'), testCertificate('two')]);
    const user = { 'client-certificate-data': base64(one.cert), 'client-key-data': base64(two.key) };
    await assert.rejects(load(context, config({ user })), {
      code: 'kubeconfig-invalid',
      message: /users\[0\]\.user\.client-certificate: expected .* a certificate and its key must belong together/,
    });
  });

  const exec = (fields: object): Parts => ({
    user: {
      exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Never', ...fields },
    },
  });
  const broken: readonly (readonly [name: string, text: string, expected: RegExp])[] = [
    [
      'invalid YAML',
      'clusters: [\nusers: }',
      /config: line 2, column \d+: expected YAML, got an error: .+; correct that line/,
    ],
    ['a list', '- a', /expected a mapping with clusters, contexts and users/],
    ['another kind', '{"kind": "Pod"}', /kind: expected Config, got "Pod"/],
    ['another version', '{"apiVersion": "v2"}', /apiVersion: expected v1, got "v2"/],
    ['an empty file', '', /kubeconfig .*: expected contexts, got none; is this the right file\?/],
    ['no current context', '{"contexts": [{"name": "a", "context": {}}]}', /got none; choose one of "a"/],
    [
      'an unknown context',
      '{"current-context": "b", "contexts": [{"name": "a"}]}',
      /a context named "b", got none; there are "a"/,
    ],
    [
      'no cluster',
      config({ context: { cluster: null } }),
      /contexts\[0\]\.context\.cluster: expected a text, got nothing; name one of clusters: "one"/,
    ],
    [
      'an unknown cluster',
      config({ context: { cluster: 'x' } }),
      /context\.cluster: expected the name of an entry of clusters, got "x"; there are "one"/,
    ],
    [
      'an unknown user',
      config({ context: { user: 'x' } }),
      /context\.user: expected the name of an entry of users, got "x"; there are "me"/,
    ],
    [
      'clusters that are no list',
      '{"current-context": "a", "clusters": {}}',
      /clusters: expected a list, got a mapping/,
    ],
    ['an entry without a name', '{"users": [{}]}', /users\[0\]\.name: expected a text, got nothing/],
    ['an entry that is a text', '{"users": ["x"]}', /users\[0\]: expected a mapping, got a string/],
    [
      'no server',
      config({ cluster: { server: '' } }),
      /clusters\[0\]\.cluster\.server: expected a text, got nothing; write the address/,
    ],
    [
      'a server that is a number',
      config({ cluster: { server: 6443 } }),
      /cluster\.server: expected a text, got a number; put it in quotes/,
    ],
    [
      'a server that is no address',
      config({ cluster: { server: 'localhost:6443' } }),
      /cluster\.server: expected an address with https:\/\/, got "localhost:6443"/,
    ],
    [
      'a proxy',
      config({ cluster: { 'proxy-url': 'http://proxy' } }),
      /cluster\.proxy-url: expected nothing, got a proxy; proxies are not supported/,
    ],
    [
      'a flag in quotes',
      config({ cluster: { 'insecure-skip-tls-verify': 'true' } }),
      /insecure-skip-tls-verify: expected true or false, got a string/,
    ],
    [
      'an authority that is no certificate',
      config({ cluster: { 'certificate-authority-data': base64('x') } }),
      /certificate-authority-data: expected base64 of a PEM CERTIFICATE/,
    ],
    [
      'a damaged authority',
      config({
        cluster: { 'certificate-authority-data': base64('-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----') },
      }),
      /certificate-authority: expected what TLS can use/,
    ],
    [
      'a missing file',
      config({ cluster: { 'certificate-authority': 'nothing.crt' } }),
      /certificate-authority: expected a file that can be read, got .*nothing\.crt \(there is no such file or folder\)/,
    ],
    [
      'a token with a line break',
      config({ user: { token: 'a\nb' } }),
      /user\.token: expected a token, got other characters/,
    ],
    [
      'two ways at once',
      config({ user: { token: 'a', username: 'b' } }),
      /expected one authentication method, got token and username/,
    ],
    [
      'an auth provider',
      config({ user: { 'auth-provider': { name: 'gcp' } } }),
      /user\.auth-provider: expected an exec plugin or a token, got an auth provider; Kubernetes removed those/,
    ],
    [
      'a key without its certificate',
      config({ user: { 'client-key-data': base64('-----BEGIN PRIVATE KEY-----') } }),
      /user\.client-certificate: expected the certificate/,
    ],
    [
      'exec without a version',
      config(exec({ apiVersion: null })),
      /exec\.apiVersion: expected a text, got nothing; write one of/,
    ],
    [
      'exec of an old version',
      config(exec({ apiVersion: 'client.authentication.k8s.io/v1alpha1' })),
      /exec\.apiVersion: expected one of .*, got ".*v1alpha1"/,
    ],
    ['exec without a program', config(exec({ command: null })), /exec\.command: expected a text, got nothing/],
    [
      'exec without a mode',
      config(exec({ interactiveMode: null })),
      /exec\.interactiveMode: expected Never, IfAvailable or Always, got nothing/,
    ],
    [
      'exec with an argument that is a number',
      config(exec({ args: [1] })),
      /exec\.args\[0\]: expected a text, got a number/,
    ],
    [
      'exec with a variable without a name',
      config(exec({ env: [{ value: 'x' }] })),
      /exec\.env\[0\]\.name: expected a text, got nothing/,
    ],
  ];
  for (const [name, text, expected] of broken) {
    it(`reports ${name}`, async (context) => {
      await assert.rejects(load(context, text), (error) => {
        assert.ok(error instanceof ClusterError);
        assert.equal(error.code, 'kubeconfig-invalid');
        assert.match(error.message, /^kubeconfig \//);
        assert.match(error.message, expected);
        return true;
      });
    });
  }

  it('names the paths where no file was found', async (context) => {
    const folder = new TemporaryFolder(context);
    const missing = join(folder.path, 'missing');
    await assert.rejects(loadKubeconfig({ paths: [missing], env: {} }), {
      code: 'kubeconfig-missing',
      message: /there is no such file or folder/,
    });
    await assert.rejects(loadKubeconfig({ env: { KUBECONFIG: missing } }), {
      code: 'kubeconfig-missing',
      message: /looked for/,
    });
    await assert.rejects(loadKubeconfig({ env: {} }), {
      code: 'kubeconfig-missing',
      message: /neither KUBECONFIG nor HOME/,
    });
  });

  it('does not print secrets', async (context) => {
    await assert.rejects(
      load(context, config({ user: { token: ['s3cret'] } })),
      (error) => !String(error).includes('s3cret'),
    );
    await assert.rejects(
      load(context, config({ user: { token: 's3c ret' } })),
      (error) => !String(error).includes('s3c'),
    );
  });

  it('accepts any file content', async (context) => {
    const folder = new TemporaryFolder(context);
    const value = fc.oneof(fc.jsonValue(), fc.constantFrom('dev', 'one', 'me', 'https://x'));
    const entry = (key: string): fc.Arbitrary<unknown> =>
      fc.oneof(
        fc.jsonValue(),
        fc.record({
          name: value,
          [key]: fc.dictionary(fc.constantFrom('cluster', 'user', 'server', 'exec', '__proto__'), value),
        }),
      );
    const file = fc.record(
      {
        'current-context': value,
        contexts: fc.array(entry('context')),
        clusters: fc.array(entry('cluster')),
        users: fc.array(entry('user')),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          file.map((content) => JSON.stringify(content)),
          fc.string(),
        ),
        async (text) => {
          try {
            await loadKubeconfig({ paths: [folder.write('config', text)], env: {} });
          } catch (error) {
            assert.ok(error instanceof ClusterError, String(error));
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
