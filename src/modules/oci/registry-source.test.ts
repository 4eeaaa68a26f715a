import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import { create } from 'tar';

import { digestOf } from '../reference/digest.ts';
import type { ModuleError } from '../reference/errors.ts';
import { parseReference, type RegistryReference } from '../reference/module-reference.ts';
import { DEFAULT_SOURCES, type RegistryMirror, type SourcesConfig } from '../sources/sources.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { TestAuthority } from '../testing/test-authority.ts';
import { testModule } from '../testing/test-module.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { TestServer } from '../testing/test-server.ts';
import { MAX_MANIFEST_BYTES } from './manifest.ts';
import { type PulledModule, pullModule, type PullOptions } from './registry-source.ts';

const MODULE = testModule('the content of a policy '.repeat(100));
const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';
const authority = await TestAuthority.create();
const identity = await authority.issue();
const folder = await TemporaryFolder.create();
after(() => folder[Symbol.asyncDispose]());

function mirrored(host: string, ...mirrors: RegistryMirror[]): Pick<SourcesConfig, 'mirrors'> {
  return { mirrors: new Map([[host, mirrors]]) };
}

function mirrorOf(registry: TestRegistry, prefix = ''): RegistryMirror {
  return { kind: 'registry', origin: registry.server.origin, prefix, shown: registry.host };
}

async function pull(reference: string, options: Partial<PullOptions> = {}): Promise<PulledModule> {
  const parsed = parseReference(reference) as RegistryReference;
  const host = new URL(`https://${parsed.host}`).host;
  return await pullModule(parsed, { sources: authority.sourcesFor(host), maxBytes: 100_000, ...options });
}

/** A Docker config file with a user and password for a host. */
async function dockerConfig(host: string, username: string, password: string): Promise<string> {
  const path = join(folder.path, `${randomBytes(8).toString('hex')}.json`);
  await writeFile(path, JSON.stringify({ auths: { [host]: { username, password } } }));
  return path;
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): true {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  return true;
}

describe('pullModule', () => {
  it('pulls a module by tag and by digest, and reports progress', async () => {
    await using registry = await TestRegistry.start(identity);
    const { digest } = registry.push('a/b', 'v1', MODULE);
    const seen: [number, number | undefined][] = [];
    const pulled = await pull(`registry://${registry.host}/a/b:v1`, {
      onProgress: (received, total) => seen.push([received, total]),
    });
    assert.deepEqual(pulled, { bytes: Buffer.from(MODULE), manifest: digest });
    assert.deepEqual(seen.at(-1), [MODULE.length, MODULE.length]);
    registry.push('a/b', 'v1', testModule('moved'));
    assert.deepEqual(await pull(`registry://${registry.host}/a/b:v1@${digest}`), pulled);
    assert.deepEqual(registry.paths, [
      '/v2/a/b/manifests/v1',
      `/v2/a/b/blobs/${digestOf(MODULE)}`,
      `/v2/a/b/manifests/${digest}`,
      `/v2/a/b/blobs/${digestOf(MODULE)}`,
    ]);
  });

  for (const layerType of ['application/vnd.module.wasm.content.layer.v1+wasm', 'application/wasm']) {
    it(`takes a layer of the type ${layerType}`, async () => {
      await using registry = await TestRegistry.start(identity);
      registry.push('p', 'v1', MODULE, layerType);
      assert.equal((await pull(`${registry.host}/p:v1`)).bytes.length, MODULE.length);
    });
  }

  it('follows an index to the only artifact, or to the only one for WebAssembly', async () => {
    await using registry = await TestRegistry.start(identity);
    const artifact = registry.push('p', 'wasm', MODULE);
    const other = registry.push('p', 'other', testModule('other'));
    const indexOf = (...manifests: object[]): object => ({ schemaVersion: 2, mediaType: INDEX_TYPE, manifests });
    const { digest } = registry.manifest('p', 'one', indexOf(artifact), INDEX_TYPE);
    assert.deepEqual(await pull(`${registry.host}/p:one`), { bytes: Buffer.from(MODULE), manifest: digest });
    const platform = { architecture: 'wasm', os: 'wasip1' };
    registry.manifest('p', 'two', indexOf(other, { ...artifact, platform }), INDEX_TYPE);
    assert.equal((await pull(`${registry.host}/p:two`)).bytes.length, MODULE.length);
    registry.manifest('p', 'unclear', indexOf(other, artifact), INDEX_TYPE);
    await assert.rejects(pull(`${registry.host}/p:unclear`), {
      code: 'media-type-unsupported',
      message: /index of 2 artifacts, 0 of them with the architecture "wasm"/,
    });
  });

  it('ends an index of indexes', async () => {
    await using registry = await TestRegistry.start(identity);
    let inner = registry.push('p', 'v0', MODULE);
    for (const tag of ['v1', 'v2', 'v3']) {
      inner = registry.manifest('p', tag, { schemaVersion: 2, mediaType: INDEX_TYPE, manifests: [inner] }, INDEX_TYPE);
    }
    assert.equal((await pull(`${registry.host}/p:v2`)).bytes.length, MODULE.length);
    await assert.rejects(pull(`${registry.host}/p:v3`), { code: 'manifest-invalid', message: /index of indexes/ });
  });
});

describe('an answer that pullModule gets', () => {
  const descriptor = { mediaType: 'application/wasm', digest: digestOf(MODULE), size: MODULE.length };
  const manifest = (fields: object): object => ({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: descriptor,
    layers: [descriptor],
    ...fields,
  });

  for (const [what, content, code, says] of [
    ['HTML', Buffer.from('<!DOCTYPE html><title>Sign in</title>'), 'manifest-invalid', /is this a registry\?/],
    ['text', Buffer.from('nope'), 'manifest-invalid', /not JSON/],
    ['a list', [], 'manifest-invalid', /schemaVersion/],
    ['the first schema', { schemaVersion: 1 }, 'manifest-invalid', /schemaVersion/],
    ['no layers', manifest({ layers: undefined }), 'manifest-invalid', /list of at most 1000 layers/],
    [
      'too many layers',
      manifest({ layers: Array.from({ length: 1001 }, () => descriptor) }),
      'manifest-invalid',
      /1000 layers/,
    ],
    ['a layer without size', manifest({ layers: [{ ...descriptor, size: -1 }] }), 'manifest-invalid', /layers\[0\]/],
    [
      'a layer with a path',
      manifest({ layers: [{ ...descriptor, digest: 'sha256:../x' }] }),
      'manifest-invalid',
      /layers\[0\]/,
    ],
    ['a null layer', manifest({ layers: [null] }), 'manifest-invalid', /layers\[0\]/],
    ['an empty list', manifest({ layers: [] }), 'media-type-unsupported', /got no layer/],
    ['two modules', manifest({ layers: [descriptor, descriptor] }), 'media-type-unsupported', /2 WebAssembly modules/],
    [
      'an image',
      manifest({ layers: [{ ...descriptor, mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip' }] }),
      'media-type-unsupported',
      /got "application\/vnd.oci.image.layer.v1.tar\+gzip"/,
    ],
    ['another kind of manifest', manifest({ mediaType: 'text/plain' }), 'media-type-unsupported', /"text\/plain"/],
    [
      'a module that is too large',
      manifest({ layers: [{ ...descriptor, size: 100_001 }] }),
      'module-too-large',
      /100001/,
    ],
    [
      'a manifest that is too large',
      Buffer.alloc(MAX_MANIFEST_BYTES + 1, ' '),
      'manifest-invalid',
      /at most 4194304 bytes/,
    ],
  ] as const) {
    it(`is ${what}`, async () => {
      await using registry = await TestRegistry.start(identity);
      registry.manifest('p', 'v1', content);
      await assert.rejects(pull(`${registry.host}/p:v1`), { code, message: says });
    });
  }

  it('is a manifest with another digest', async () => {
    await using registry = await TestRegistry.start(identity);
    registry.push('p', 'v1', MODULE);
    const asked = digestOf(Buffer.from('asked'));
    registry.intercept = ({ url }, response) => url?.includes(asked) === true && json(response, 200, manifest({}));
    await assert.rejects(pull(`${registry.host}/p@${asked}`), { code: 'digest-mismatch', message: /manifest of/ });
  });

  for (const [what, bytes, headers, code] of [
    ['other bytes', Buffer.alloc(MODULE.length), {}, 'digest-mismatch'],
    ['fewer bytes', MODULE.subarray(0, 600), {}, 'size-mismatch'],
    ['more bytes', Buffer.alloc(MODULE.length + 1), {}, 'size-mismatch'],
    [
      'fewer bytes than announced',
      MODULE.subarray(0, 600),
      { 'content-length': `${MODULE.length}` },
      'source-truncated',
    ],
    ['another length', MODULE, { 'content-length': '7' }, 'size-mismatch'],
  ] as const) {
    it(`is a blob with ${what}`, async () => {
      await using registry = await TestRegistry.start(identity);
      registry.push('p', 'v1', MODULE);
      registry.intercept = ({ url }, response) => {
        if (url?.includes(`/blobs/${digestOf(MODULE)}`) !== true) {
          return false;
        }
        response.writeHead(200, headers);
        response.write(bytes, () => (code === 'source-truncated' ? response.destroy() : response.end()));
        return true;
      };
      await assert.rejects(pull(`${registry.host}/p:v1`), { code });
    });
  }

  it('is a manifest of 100 MB, of which no more than the limit is kept', async () => {
    await using registry = await TestRegistry.start(identity);
    const chunk = Buffer.alloc(1024 * 1024, ' ');
    let sent = 0;
    const ended = Promise.withResolvers<undefined>();
    registry.intercept = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/vnd.oci.image.manifest.v1+json' });
      const write = (): void => {
        while (sent < 100 && !response.destroyed) {
          sent += 1;
          if (!response.write(chunk)) {
            return;
          }
        }
        response.end();
      };
      response.on('drain', write).on('close', () => ended.resolve(undefined));
      write();
      return true;
    };
    await assert.rejects(pull(`${registry.host}/p:v1`), { code: 'manifest-invalid', message: /at most 4194304 bytes/ });
    await ended.promise;
    assert.ok(sent < 50, `${sent} MiB were sent`);
  });

  it('is an index that names itself', async () => {
    await using registry = await TestRegistry.start(identity);
    const index = (digest: string): object => ({
      schemaVersion: 2,
      mediaType: INDEX_TYPE,
      manifests: [{ ...descriptor, digest }],
    });
    const { digest } = registry.manifest('p', 'v1', index(descriptor.digest), INDEX_TYPE);
    // Its digest cannot be in itself, so the registry has to lie.
    registry.intercept = ({ url }, response) =>
      url?.includes('/manifests/') === true && json(response, 200, index(digest), { 'content-type': INDEX_TYPE });
    await assert.rejects(pull(`${registry.host}/p:v1`), { code: 'digest-mismatch' });
    assert.equal(registry.paths.length, 2);
  });

  it('is no module', async () => {
    await using registry = await TestRegistry.start(identity);
    registry.push('p', 'v1', Buffer.from('<html>'.repeat(200)));
    await assert.rejects(pull(`${registry.host}/p:v1`), { code: 'not-wasm' });
  });

  for (const [status, code] of [
    [401, 'source-unauthorized'],
    [403, 'source-access-denied'],
    [404, 'source-not-found'],
    [429, 'source-rate-limited'],
    [500, 'source-failed'],
    [400, 'source-status'],
  ] as const) {
    it(`has the status ${status}, with the codes of the registry and not its text`, async () => {
      await using registry = await TestRegistry.start(identity);
      const errors = [{ code: 'DENIED', message: 'secret' }, { code: 'SECRET' }, null];
      registry.intercept = (_request, response) => json(response, status, { errors });
      await assert.rejects(pull(`${registry.host}/p:v1`), (error: Error & { code: string }) => {
        assert.equal(error.code, code);
        assert.match(error.message, new RegExp(`${registry.host}.*answered ${status} \\(DENIED\\)`));
        assert.doesNotMatch(error.message, /secret/i);
        return true;
      });
    });
  }

  it('redirects to a storage service, which gets no credentials', async () => {
    const seen: (string | undefined)[] = [];
    await using storage = await TestServer.start(({ headers }, response) => {
      seen.push(headers.authorization);
      response.end(MODULE);
    }, identity);
    await using registry = await TestRegistry.start(identity);
    registry.push('p', 'v1', MODULE);
    registry.intercept = ({ url, headers }, response) => {
      if (headers.authorization === undefined) {
        return json(response, 401, {}, { 'www-authenticate': 'Basic realm="r"' });
      }
      if (url?.includes('/blobs/') === true) {
        response.writeHead(307, { location: `${storage.origin}/x?signature=s` }).end();
        return true;
      }
      return false;
    };
    const config = await dockerConfig(registry.host, 'joe', 'pw');
    const sources = authority.sourcesFor(registry.host, storage.host);
    assert.equal(
      (await pull(`${registry.host}/p:v1`, { sources: { ...sources, dockerConfig: config } })).bytes.length,
      MODULE.length,
    );
    assert.deepEqual(seen, [undefined]);
  });

  it('redirects to itself', async () => {
    await using registry = await TestRegistry.start(identity);
    registry.intercept = ({ url }, response) => {
      response.writeHead(302, { location: url }).end();
      return true;
    };
    await assert.rejects(pull(`${registry.host}/p:v1`), { code: 'source-redirect' });
  });
});

describe('authentication of pullModule', () => {
  /** A registry that requires a token from its token service. */
  async function withTokens(
    service: (request: IncomingMessage, response: ServerResponse, body: string) => void,
  ): Promise<TestRegistry> {
    const registry = await TestRegistry.start(identity);
    registry.push('a/b', 'v1', MODULE);
    const realm = `${registry.server.origin}/token`;
    registry.intercept = (request, response) => {
      if (request.url?.startsWith('/token') === true) {
        let body = '';
        request
          .on('data', (chunk: Buffer) => (body += chunk.toString()))
          .on('end', () => service(request, response, body));
        return true;
      }
      return request.headers.authorization === 'Bearer good.token'
        ? false
        : json(
            response,
            401,
            {},
            { 'www-authenticate': `Bearer realm="${realm}",service="reg",scope="repository:a/b:pull"` },
          );
    };
    return registry;
  }

  it('gets one token for a pull, with the password for the token service only', async () => {
    const seen: unknown[] = [];
    await using registry = await withTokens(({ url, headers }, response) => {
      seen.push([url, headers.authorization]);
      json(response, 200, { token: 'good.token' });
    });
    const config = await dockerConfig(registry.host, 'joe', 'pw');
    assert.equal(
      (
        await pull(`${registry.host}/a/b:v1`, {
          sources: { ...authority.sourcesFor(registry.host), dockerConfig: config },
        })
      ).bytes.length,
      MODULE.length,
    );
    const basic = `Basic ${Buffer.from('joe:pw').toString('base64')}`;
    assert.deepEqual(seen, [['/token?scope=repository%3Aa%2Fb%3Apull&service=reg', basic]]);
  });

  it('gets a token anonymously', async () => {
    await using registry = await withTokens(({ headers }, response) =>
      json(response, headers.authorization === undefined ? 200 : 500, { access_token: 'good.token' }),
    );
    assert.equal((await pull(`${registry.host}/a/b:v1`)).bytes.length, MODULE.length);
  });

  it('posts a refresh token', async () => {
    let posted = '';
    await using registry = await withTokens((_request, response, body) => {
      posted = body;
      json(response, 200, { access_token: 'good.token' });
    });
    const path = join(folder.path, 'refresh.json');
    await writeFile(path, JSON.stringify({ auths: { [registry.host]: { identitytoken: 'refresh' } } }));
    assert.equal(
      (
        await pull(`${registry.host}/a/b:v1`, {
          sources: { ...authority.sourcesFor(registry.host), dockerConfig: path },
        })
      ).bytes.length,
      MODULE.length,
    );
    assert.equal(new URLSearchParams(posted).get('refresh_token'), 'refresh');
  });

  for (const [what, answer, code] of [
    ['HTML', (response: ServerResponse) => response.end('<html>'), 'token-invalid'],
    ['no token', (response: ServerResponse) => json(response, 200, {}), 'token-invalid'],
    [
      'a token with a line break',
      (response: ServerResponse) => json(response, 200, { token: 'a\r\nx: y' }),
      'token-invalid',
    ],
    [
      'a huge token',
      (response: ServerResponse) => json(response, 200, { token: 'a'.repeat(300_000) }),
      'token-invalid',
    ],
    ['a wrong token', (response: ServerResponse) => json(response, 200, { token: 'wrong' }), 'source-unauthorized'],
    ['a denial', (response: ServerResponse) => json(response, 403, {}), 'source-access-denied'],
  ] as const) {
    it(`says when the token service answers ${what}`, async () => {
      await using registry = await withTokens((_request, response) => answer(response));
      await assert.rejects(pull(`${registry.host}/a/b:v1`), { code });
    });
  }

  it('does not send a refresh token on to another origin', async () => {
    await using other = await TestServer.start((_request, response) => json(response, 200, { token: 'x' }), identity);
    await using registry = await withTokens((_request, response) =>
      response.writeHead(307, { location: other.origin }).end(),
    );
    const path = join(folder.path, 'redirected.json');
    await writeFile(path, JSON.stringify({ auths: { [registry.host]: { identitytoken: 'refresh' } } }));
    const options = { sources: { ...authority.sourcesFor(registry.host, other.host), dockerConfig: path } };
    await assert.rejects(pull(`${registry.host}/a/b:v1`, options), { code: 'source-redirect' });
    assert.equal(other.requests, 0);
  });

  for (const realm of ['http://127.0.0.1:9/token', 'file:///etc/passwd', 'https://']) {
    it(`does not ask a token service at ${realm}`, async () => {
      await using registry = await TestRegistry.start(identity);
      registry.intercept = (_request, response) =>
        json(response, 401, {}, { 'www-authenticate': `Bearer realm="${realm}"` });
      await assert.rejects(pull(`${registry.host}/p:v1`), { code: 'token-invalid' });
    });
  }

  it('does not ask the token service of a tenant’s registry at a private address', async () => {
    await using service = await TestServer.start((_request, response) => json(response, 200, { token: 'x' }), identity);
    await using registry = await TestRegistry.start(identity);
    registry.intercept = (_request, response) =>
      json(response, 401, {}, { 'www-authenticate': `Bearer realm="${service.origin}"` });
    const sources = { ...authority.sourcesFor(registry.host, service.host), tenantHosts: [registry.host] };
    await assert.rejects(pull(`${registry.host}/p:v1`, { sources, isForTenant: true }), (error: ModuleError) => {
      assert.equal(error.code, 'source-forbidden');
      assert.ok(error.message.includes(service.host) && !error.tenantMessage.includes(service.host));
      return true;
    });
    assert.equal(service.requests, 0);
  });
});

describe('a busy registry', () => {
  it('gets the request again when it asks for a retry', async () => {
    await using registry = await TestRegistry.start(identity);
    registry.push('p', 'v1', MODULE);
    let refusals = 2;
    registry.intercept = (_request, response) => {
      refusals -= 1;
      return refusals >= 0 && json(response, 429, {}, { 'retry-after': '0' });
    };
    assert.equal((await pull(`${registry.host}/p:v1`)).bytes.length, MODULE.length);
  });

  it('that asks for a long delay is left alone, and the message says how long', async () => {
    await using registry = await TestRegistry.start(identity);
    registry.intercept = (_request, response) => json(response, 429, {}, { 'retry-after': '3600' });
    await assert.rejects(pull(`${registry.host}/p:v1`), { code: 'source-rate-limited', message: /in 3600 s/ });
    assert.equal(registry.paths.length, 1);
  });
});

describe('mirrors', () => {
  it('are tried in their order, before the registry', async () => {
    await using empty = await TestRegistry.start(identity);
    await using full = await TestRegistry.start(identity);
    const { digest } = full.push('copies/a/b', 'v1', MODULE);
    const sources = {
      ...authority.sourcesFor(empty.host, full.host),
      ...mirrored('ghcr.io', mirrorOf(empty), mirrorOf(full, 'copies/')),
    };
    assert.deepEqual(await pull('ghcr.io/a/b:v1', { sources }), { bytes: Buffer.from(MODULE), manifest: digest });
    assert.deepEqual(empty.paths, ['/v2/a/b/manifests/v1']);
  });

  it('that are down or lie leave the registry', async () => {
    await using registry = await TestRegistry.start(identity);
    const { digest } = registry.push('a', 'v1', MODULE);
    await using liar = await TestRegistry.start(identity);
    liar.intercept = (_request, response) => json(response, 200, { schemaVersion: 2, layers: [] });
    const down = await TestRegistry.start(identity);
    await down[Symbol.asyncDispose]();
    const sources = {
      ...authority.sourcesFor(registry.host, liar.host, down.host),
      ...mirrored(registry.host, mirrorOf(down), mirrorOf(liar)),
    };
    assert.equal((await pull(`${registry.host}/a:v1@${digest}`, { sources })).manifest, digest);
    await registry[Symbol.asyncDispose]();
    const reference = `${registry.host}/a:v1@${digest}`;
    await assert.rejects(pull(reference, { sources }), (error: Error & { code: string }) => {
      assert.equal(error.code, 'digest-mismatch', 'it says more than "unreachable"');
      assert.match(error.message, /Tried as well: .*cannot be reached.*cannot be reached/);
      return true;
    });
    await assert.rejects(pull(reference, { sources }), ({ tenantMessage }: ModuleError) => {
      assert.ok(!tenantMessage.includes(down.host), 'tenants need not know mirrors');
      return true;
    });
  });

  it('may have a private address also for tenants', async () => {
    await using registry = await TestRegistry.start(identity);
    registry.push('a', 'v1', MODULE);
    const sources = { ...authority.sourcesFor(registry.host), ...mirrored('ghcr.io', mirrorOf(registry)) };
    assert.equal((await pull('ghcr.io/a:v1', { sources, isForTenant: true })).bytes.length, MODULE.length);
    await assert.rejects(pull(`${registry.host}/a:v1`, { sources, isForTenant: true }), { code: 'source-forbidden' });
  });

  for (const kind of ['folder', 'tarball']) {
    it(`may be a ${kind} with an OCI layout`, async () => {
      const root = join(folder.path, `layout-${kind}`);
      await mkdir(join(root, 'blobs', 'sha256'), { recursive: true });
      const store = async (bytes: Uint8Array): Promise<{ digest: string; size: number }> => {
        const digest = digestOf(bytes);
        await writeFile(join(root, 'blobs', 'sha256', digest.slice(7)), bytes);
        return { digest, size: bytes.length };
      };
      const layer = { mediaType: 'application/wasm', ...(await store(MODULE)) };
      const manifest = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json', layers: [layer] };
      const stored = await store(Buffer.from(JSON.stringify(manifest)));
      const annotations = { 'org.opencontainers.image.ref.name': 'ghcr.io/a/b:v1' };
      const index = {
        schemaVersion: 2,
        mediaType: INDEX_TYPE,
        manifests: [{ mediaType: manifest.mediaType, ...stored, annotations }],
      };
      await writeFile(join(root, 'index.json'), JSON.stringify(index));
      const path = kind === 'folder' ? root : `${root}.tar`;
      const pack = async (): Promise<void> =>
        kind === 'folder' ? undefined : create({ file: path, cwd: root }, ['.']);
      await pack();
      const sources = { ...DEFAULT_SOURCES, ...mirrored('ghcr.io', { kind: 'layout', path, shown: 'x' }) };
      // A port that refuses: without network, the registry itself cannot be reached.
      const offline = { ...sources, proxies: { httpsProxy: 'http://127.0.0.1:9' } };
      for (const reference of ['ghcr.io/a/b:v1', `ghcr.io/a/b@${stored.digest}`]) {
        const pulled = await pull(reference, { sources: offline, isForTenant: true });
        assert.deepEqual([pulled.manifest, pulled.bytes.length], [stored.digest, MODULE.length]);
      }
      await assert.rejects(pull('ghcr.io/a/b:v2', { sources: offline }), { message: /not in the OCI layout/ });
      await writeFile(join(root, 'blobs', 'sha256', layer.digest.slice(7)), Buffer.alloc(MODULE.length));
      await pack();
      await assert.rejects(pull('ghcr.io/a/b:v1', { sources: offline }), { code: 'digest-mismatch' });
      await rm(join(root, 'blobs', 'sha256', layer.digest.slice(7)));
      await pack();
      await assert.rejects(pull('ghcr.io/a/b:v1', { sources: offline }), { message: /cannot be read|is not there/ });
    });
  }
});

describe('an insecure registry', () => {
  it('is reached with any certificate, or without TLS, only if sources.yml names it', async () => {
    await using secure = await TestRegistry.start(identity);
    await using plain = await TestRegistry.start();
    for (const registry of [secure, plain]) {
      registry.push('p', 'v1', MODULE);
      const insecure = { ...DEFAULT_SOURCES, insecureSources: [registry.host] };
      assert.equal((await pull(`${registry.host}/p:v1`, { sources: insecure })).bytes.length, MODULE.length);
      await assert.rejects(pull(`${registry.host}/p:v1`, { sources: DEFAULT_SOURCES }), {
        code: registry === secure ? 'source-untrusted' : /^source-(untrusted|truncated)$/,
      });
    }
  });
});
