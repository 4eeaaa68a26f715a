import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import { digestOf } from '../reference/digest.ts';
import type { ModuleError } from '../reference/errors.ts';
import { parseReference, type RegistryReference } from '../reference/module-reference.ts';
import { DEFAULT_SOURCES, type SourcesConfig } from '../sources/sources.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { TestAuthority } from '../testing/test-authority.ts';
import { testModule } from '../testing/test-module.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { TestServer } from '../testing/test-server.ts';
import { type PushedModule, pushModule, type PushOptions } from './push.ts';
import { pullModule } from './registry-source.ts';

const MODULE = testModule('the content of a policy '.repeat(10_000));
const authority = await TestAuthority.create();
const identity = await authority.issue();
const folder = await TemporaryFolder.create();
after(() => folder[Symbol.asyncDispose]());

const referenceOf = (text: string): RegistryReference => parseReference(text) as RegistryReference;

async function push(host: string, options: Partial<PushOptions> = {}): Promise<PushedModule> {
  const reference = referenceOf(`registry://${host}/a/b:v1`);
  return await pushModule(reference, MODULE, { sources: authority.sourcesFor(host), annotations: {}, ...options });
}

async function withPassword(sources: SourcesConfig, host: string): Promise<SourcesConfig> {
  const dockerConfig = join(folder.path, `${randomBytes(8).toString('hex')}.json`);
  await writeFile(dockerConfig, JSON.stringify({ auths: { [host]: { username: 'me', password: 'secret' } } }));
  return { ...sources, dockerConfig };
}

/** The code and the message of the error. */
async function failure(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'no error',
    ({ code, message }: ModuleError) => `${code}: ${message}`,
  );
}

describe('pushModule', () => {
  it('stores a module as Kubewarden does, which pulls find, with the annotations of the metadata', async () => {
    await using registry = await TestRegistry.start(identity);
    const sent: [number, number | undefined][] = [];
    const { manifest, wasThere } = await push(registry.host, {
      annotations: {
        'io.kubewarden.policy.title': 'a title',
        'io.kubewarden.policy.source': 'https://example.com/source',
        'io.kubewarden.policy.usage': 'two\nlines',
      },
      onSent: (bytes, total) => sent.push([bytes, total]),
    });
    assert.equal(wasThere, false);
    assert.deepEqual(JSON.parse(Buffer.from(registry.stored('a/b/manifests/v1') ?? '').toString('utf8')), {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.wasm.config.v1+json', digest: digestOf(Buffer.from('{}')), size: 2 },
      layers: [
        {
          mediaType: 'application/vnd.wasm.content.layer.v1+wasm',
          digest: digestOf(MODULE),
          size: MODULE.length,
          annotations: { 'org.opencontainers.image.title': 'policy.wasm' },
        },
      ],
      annotations: {
        'io.kubewarden.policy.source': 'https://example.com/source',
        'io.kubewarden.policy.title': 'a title',
        'org.opencontainers.image.source': 'https://example.com/source',
      },
    });
    assert.ok(sent.length > 1);
    assert.deepEqual(sent.at(-1), [MODULE.length, MODULE.length]);
    const options = { sources: authority.sourcesFor(registry.host), maxBytes: MODULE.length };
    assert.deepEqual(await pullModule(referenceOf(`${registry.host}/a/b:v1`), options), {
      bytes: Buffer.from(MODULE),
      manifest,
    });
  });

  it('does not send blobs that the registry has, and gives the same module the same digest', async () => {
    await using registry = await TestRegistry.start(identity);
    const first = await push(registry.host);
    registry.paths.length = 0;
    assert.deepEqual(await push(registry.host), { ...first, wasThere: true });
    assert.deepEqual(registry.paths, [
      `/v2/a/b/blobs/${digestOf(Buffer.from('{}'))}`,
      `/v2/a/b/blobs/${digestOf(MODULE)}`,
      '/v2/a/b/manifests/v1',
    ]);
  });

  it('asks the token service for the right to push, whatever the challenge asks for', async () => {
    const scopes: (string | null)[] = [];
    await using tokens = await TestServer.start((request, response) => {
      scopes.push(new URL(request.url ?? '', 'http://tokens').searchParams.get('scope'));
      response.end(JSON.stringify({ token: 'the-token' }));
    }, identity);
    await using registry = await TestRegistry.start(identity);
    registry.intercept = ({ headers }, response) => {
      if (headers.authorization === 'Bearer the-token') {
        return false;
      }
      const challenge = `Bearer realm="${tokens.origin}/token",scope="repository:other:pull"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
      return true;
    };
    await push(registry.host, { sources: authority.sourcesFor(registry.host, tokens.host) });
    assert.deepEqual(scopes, ['repository:a/b:pull,push']);
  });

  it('sends content to an upload location on another server, but no credentials, also if that asks for them', async () => {
    await using registry = await TestRegistry.start(identity);
    const requests: IncomingMessage[] = [];
    await using storage = await TestServer.start((request, response) => {
      requests.push(request);
      request.resume();
      const isAsking = request.url?.startsWith('/asks') === true;
      response.writeHead(isAsking ? 401 : 201, { 'www-authenticate': 'Basic realm="x"' }).end();
    }, identity);
    const sources = await withPassword(authority.sourcesFor(registry.host, storage.host), registry.host);
    let location = `${storage.origin.replace('//', '//user:password@')}/store?signature=a%2Fb`;
    registry.intercept = ({ method, headers }, response) => {
      if (headers.authorization === undefined) {
        response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
        return true;
      }
      if (method === 'POST') {
        response.writeHead(202, { location }).end();
      }
      return method === 'POST';
    };
    await push(registry.host, { sources });
    assert.deepEqual(
      requests.map(({ url, headers }) => [url?.split('&')[0], headers.authorization]),
      [
        ['/store?signature=a%2Fb', undefined],
        ['/store?signature=a%2Fb', undefined],
      ],
    );
    location = `${storage.origin}/asks`;
    assert.match(await failure(push(registry.host, { sources })), /^source-unauthorized: /);
    assert.equal(requests.at(-1)?.headers.authorization, undefined);
  });

  for (const [what, location] of [
    ['none', undefined],
    ['that is no URL', 'https://'],
    ['that leaves https', 'http://localhost/v2/'],
    ['of another protocol', 'ftp://localhost/v2/'],
    ['that is too long', `/v2/${'a'.repeat(9_000)}`],
  ] as const) {
    it(`refuses an upload location ${what}`, async () => {
      await using registry = await TestRegistry.start(identity);
      registry.intercept = ({ method }, response) => {
        if (method === 'POST') {
          response.writeHead(202, location === undefined ? {} : { location }).end();
        }
        return method === 'POST';
      };
      assert.match(await failure(push(registry.host)), /^source-redirect: .* names no place for the upload/);
    });
  }

  it('refuses to follow an upload to another server', async () => {
    await using registry = await TestRegistry.start(identity);
    await using other = await TestServer.start((_request, response) => void response.writeHead(201).end(), identity);
    registry.intercept = ({ method }, response) => {
      if (method === 'PUT') {
        response.writeHead(307, { location: other.origin }).end();
      }
      return method === 'PUT';
    };
    const sources = authority.sourcesFor(registry.host, other.host);
    assert.match(
      await failure(push(registry.host, { sources })),
      /^source-redirect: .* redirects a request with content/,
    );
  });

  for (const [status, on, expected] of [
    [401, 'HEAD', /^source-unauthorized: .* answered 401: expected that it accepts the push/],
    [403, 'POST', /^source-access-denied: .* answered 403 \(DENIED\).*may not push to this repository/],
    [404, 'POST', /^source-not-found: .*There is no such repository, or the credentials may not see it/],
    [405, 'POST', /^source-status: .*The registry accepts no pushes: is it a mirror, or read-only\?/],
    [413, 'PUT', /^module-too-large: .*limits the size of uploads: raise that limit/],
    [500, 'PUT', /^source-failed: /],
  ] as const) {
    it(`says what an answer ${status} to ${on} means`, async () => {
      await using registry = await TestRegistry.start(identity);
      registry.intercept = (request, response) => {
        if (request.method !== on) {
          return false;
        }
        request.resume();
        response.writeHead(status).end(JSON.stringify({ errors: [{ code: 'DENIED' }, { code: '<script>' }] }));
        return true;
      };
      const got = await failure(push(registry.host));
      assert.match(got, expected);
      assert.doesNotMatch(got, /script/);
    });
  }

  it('refuses a registry that stores another manifest', async () => {
    await using registry = await TestRegistry.start(identity);
    registry.intercept = ({ method, url }, response) => {
      const isManifest = method === 'PUT' && url?.includes('/manifests/') === true;
      if (isManifest) {
        response.writeHead(201, { 'docker-content-digest': digestOf(Buffer.from('other')) }).end();
      }
      return isManifest;
    };
    assert.match(await failure(push(registry.host)), /^digest-mismatch: .* stored another manifest/);
  });

  it('reaches an insecure registry without TLS, but not after it refused the push', async () => {
    await using plain = await TestRegistry.start();
    const sources = { ...DEFAULT_SOURCES, insecureSources: [plain.host] };
    assert.equal((await push(plain.host, { sources })).wasThere, false);
    await using secure = await TestRegistry.start(identity);
    secure.intercept = (_request, response) => {
      response.writeHead(403).end();
      return true;
    };
    const refused = await failure(
      push(secure.host, { sources: { ...DEFAULT_SOURCES, insecureSources: [secure.host] } }),
    );
    assert.match(refused, /^source-access-denied: /);
  });
});
