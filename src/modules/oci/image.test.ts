import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import type { TransferOptions } from '../http/http-transfer.ts';
import { parseImage } from '../reference/module-reference.ts';
import { anonymousSources } from '../sources/tenant-sources.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { TestAuthority } from '../testing/test-authority.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import {
  type ImageManifest,
  type ImageWithConfig,
  MAX_IMAGE_CONFIG_BYTES,
  readImage,
  readImageConfig,
} from './image.ts';
import { resolveDigest } from './registry-source.ts';

const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';
const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json';
const ARM = { os: 'linux', architecture: 'arm64' };
const CONFIG = {
  architecture: 'arm64',
  os: 'linux',
  config: { User: '65533', Env: ['A=b'] },
  rootfs: { diff_ids: [] },
};
const authority = await TestAuthority.create();
const identity = await authority.issue();
const folder = await TemporaryFolder.create();
after(() => folder[Symbol.asyncDispose]());

/** Options for a read of `host/a/b:v1`. */
function options(host: string, more: Partial<TransferOptions> = {}): TransferOptions {
  return { sources: authority.sourcesFor(host), ...more };
}

async function read(registry: TestRegistry, more: Partial<TransferOptions> = {}): Promise<ImageManifest> {
  return await readImage(parseImage(`${registry.host}/a/b:v1`), options(registry.host, more));
}

async function readConfig(registry: TestRegistry, tag = 'v1'): Promise<ImageWithConfig> {
  return await readImageConfig(parseImage(`${registry.host}/a/b:${tag}`), ARM, options(registry.host));
}

/** Stores an image with a configuration and one layer. */
function pushImage(registry: TestRegistry, tag: string, config: object | Uint8Array = CONFIG, more: object = {}) {
  const bytes = config instanceof Uint8Array ? config : Buffer.from(JSON.stringify(config));
  const manifest = {
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: registry.blob('a/b', bytes, CONFIG_TYPE),
    layers: [registry.blob('a/b', Buffer.from('layer'), 'application/vnd.oci.image.layer.v1.tar+gzip')],
    ...more,
  };
  return { manifest, descriptor: registry.manifest('a/b', tag, manifest) };
}

describe('parseImage', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  for (const [image, host, repository, version] of [
    ['nginx', 'docker.io', 'library/nginx', 'latest'],
    ['nginx:1.25', 'docker.io', 'library/nginx', '1.25'],
    ['library/nginx', 'docker.io', 'library/nginx', 'latest'],
    ['bitnami/redis:7', 'docker.io', 'bitnami/redis', '7'],
    ['docker.io/nginx', 'docker.io', 'library/nginx', 'latest'],
    ['index.docker.io/a/b', 'docker.io', 'a/b', 'latest'],
    ['localhost/a', 'localhost', 'a', 'latest'],
    ['localhost:5000/a:v1', 'localhost:5000', 'a', 'v1'],
    ['ghcr.io/a/b', 'ghcr.io', 'a/b', 'latest'],
    [`ghcr.io/a/b@${digest}`, 'ghcr.io', 'a/b', digest],
    [`nginx@${digest}`, 'docker.io', 'library/nginx', digest],
    [`nginx:1.25@${digest}`, 'docker.io', 'library/nginx', digest],
  ] as const) {
    it(`reads ${image}`, () => {
      const { host: gotHost, repository: gotRepository, manifest, tag } = parseImage(image);
      assert.deepEqual([gotHost, gotRepository, manifest ?? tag], [host, repository, version]);
    });
  }

  for (const image of [
    '',
    ' nginx',
    'nginx:',
    'Nginx',
    'registry://ghcr.io/a/b',
    'https://ghcr.io/a/b',
    'user:pass@ghcr.io/a',
    'ghcr.io/../a',
    'ghcr.io/a?b',
    'a'.repeat(10_000),
    'nginx@sha256:abc',
    `nginx@sha512:${'a'.repeat(128)}`,
  ]) {
    it(`refuses ${image.slice(0, 30) || 'nothing'}`, () => {
      assert.throws(() => parseImage(image), { code: 'reference-invalid' });
    });
  }
});

describe('readImage', () => {
  it('gives the fields of the specification only, and their digest', async () => {
    await using registry = await TestRegistry.start(identity);
    const known = { annotations: { a: 'b' }, artifactType: 'x/y' };
    const { manifest, descriptor } = pushImage(registry, 'v1', CONFIG, { ...known, secret: 'x' });
    const { secret, ...expected } = manifest as typeof manifest & { secret?: string };
    assert.equal(secret, 'x');
    assert.deepEqual(await read(registry), { digest: descriptor.digest, manifest: { ...expected, ...known } });
    const reference = parseImage(`${registry.host}/a/b:v1`);
    assert.equal(await resolveDigest(reference, options(registry.host)), descriptor.digest);
  });

  it('gives an index, and names the type of a manifest that does not', async () => {
    await using registry = await TestRegistry.start(identity);
    const { descriptor } = pushImage(registry, 'arm');
    const platform = { ...ARM, 'os.version': '1', variant: 'v8' };
    const manifests = [{ ...descriptor, platform, annotations: { a: 'b' } }];
    const { digest } = registry.manifest('a/b', 'v1', { schemaVersion: 2, manifests }, INDEX_TYPE);
    const expected = { schemaVersion: 2, mediaType: INDEX_TYPE, manifests };
    assert.deepEqual(await read(registry), { digest, manifest: expected });
  });

  for (const [what, content, code] of [
    ['HTML', Buffer.from('<html>'), 'manifest-invalid'],
    ['JSON that is no manifest', { secret: 'x' }, 'manifest-invalid'],
    ['another type', { schemaVersion: 2, mediaType: 'text/plain' }, 'media-type-unsupported'],
    ['a manifest without layers', { schemaVersion: 2, mediaType: MANIFEST_TYPE, secret: 'x' }, 'manifest-invalid'],
  ] as const) {
    it(`refuses ${what}, and quotes nothing of it to tenants`, async () => {
      await using registry = await TestRegistry.start(identity);
      registry.manifest('a/b', 'v1', content);
      await assert.rejects(read(registry), (error: Error & { code: string; tenantMessage: string }) => {
        assert.equal(error.code, code);
        assert.doesNotMatch(error.tenantMessage, /secret|html|plain/);
        return true;
      });
    });
  }

  it('sends no credentials with anonymous sources, and else those of the Docker config file', async () => {
    await using registry = await TestRegistry.start(identity);
    pushImage(registry, 'v1');
    const seen: (string | undefined)[] = [];
    registry.intercept = ({ headers }, response) => {
      seen.push(headers.authorization);
      if (headers.authorization !== undefined) {
        return false;
      }
      response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
      return true;
    };
    const dockerConfig = join(folder.path, 'config.json');
    await writeFile(dockerConfig, JSON.stringify({ auths: { [registry.host]: { username: 'u', password: 'p' } } }));
    const sources = { ...authority.sourcesFor(registry.host), dockerConfig };
    await read(registry, { sources });
    assert.match(seen.at(-1) ?? '', /^Basic /);
    const before = seen.length;
    await assert.rejects(read(registry, { sources: anonymousSources(sources) }), { code: 'source-unauthorized' });
    assert.deepEqual(seen.slice(before), [undefined]);
  });

  it('uses mirrors, but with anonymous sources only those that tenants may use', async () => {
    await using registry = await TestRegistry.start(identity);
    await using mirror = await TestRegistry.start(identity);
    const { descriptor } = pushImage(mirror, 'v1');
    const mirrors = new Map([
      [
        registry.host,
        [
          { kind: 'registry', origin: mirror.server.origin, prefix: '', shown: mirror.host },
          { kind: 'layout', path: folder.path, shown: 'layout' },
        ] as const,
      ],
    ]);
    const sources = { ...authority.sourcesFor(registry.host, mirror.host), mirrors };
    assert.equal((await read(registry, { sources })).digest, descriptor.digest);
    assert.equal(registry.paths.length, 0);
    await assert.rejects(read(registry, { sources: anonymousSources(sources) }), { code: 'source-not-found' });
    const tenantHosts = [registry.host, mirror.host];
    const allowed = await read(registry, {
      sources: anonymousSources({ ...sources, tenantHosts }),
      isForTenant: true,
    });
    assert.equal(allowed.digest, descriptor.digest);
  });
});

describe('readImageConfig', () => {
  it('gives manifest, digest and configuration', async () => {
    await using registry = await TestRegistry.start(identity);
    const { manifest, descriptor } = pushImage(registry, 'v1');
    assert.deepEqual(await readConfig(registry), { digest: descriptor.digest, manifest, config: CONFIG });
  });

  it('takes the first image of an index for the platform', async () => {
    await using registry = await TestRegistry.start(identity);
    const other = pushImage(registry, 'amd', {});
    const wanted = pushImage(registry, 'arm');
    const entry = ({ descriptor }: typeof other, platform: object): object => ({ ...descriptor, platform });
    const index = (...manifests: object[]): object => ({ schemaVersion: 2, mediaType: INDEX_TYPE, manifests });
    const manifests = [entry(other, { ...ARM, architecture: 'amd64' }), entry(other, { ...ARM, os: 'windows' })];
    const v1 = registry.manifest('a/b', 'v1', index(...manifests, entry(wanted, ARM), entry(other, ARM)), INDEX_TYPE);
    const { digest, manifest, config } = await readConfig(registry);
    assert.deepEqual([digest, manifest, config], [wanted.descriptor.digest, wanted.manifest, CONFIG]);

    registry.manifest('a/b', 'none', index(...manifests), INDEX_TYPE);
    await assert.rejects(readConfig(registry, 'none'), {
      code: 'media-type-unsupported',
      message: /index of 2 images, none of them for linux\/arm64/,
    });
    registry.manifest('a/b', 'nested', index({ ...v1, platform: ARM }), INDEX_TYPE);
    await assert.rejects(readConfig(registry, 'nested'), { code: 'manifest-invalid', message: /index of indexes/ });
  });

  it('refuses a configuration that is too large, before it is downloaded', async () => {
    await using registry = await TestRegistry.start(identity);
    const config = { mediaType: CONFIG_TYPE, digest: `sha256:${'a'.repeat(64)}`, size: MAX_IMAGE_CONFIG_BYTES + 1 };
    pushImage(registry, 'v1', CONFIG, { config });
    await assert.rejects(readConfig(registry), {
      code: 'manifest-invalid',
      message: /at most 4194304 bytes, got 4194305/,
    });
    assert.equal(registry.paths.length, 1);
  });

  for (const [what, config, code] of [
    ['is not JSON', Buffer.from('text'), 'manifest-invalid'],
    ['is a list', Buffer.from('[]'), 'manifest-invalid'],
  ] as const) {
    it(`refuses a configuration that ${what}`, async () => {
      await using registry = await TestRegistry.start(identity);
      pushImage(registry, 'v1', config);
      await assert.rejects(readConfig(registry), { code });
    });
  }

  it('refuses other bytes than those of the manifest', async () => {
    await using registry = await TestRegistry.start(identity);
    pushImage(registry, 'v1');
    registry.intercept = ({ url = '' }, response) => {
      if (url.includes('/blobs/')) {
        response.end(Buffer.alloc(JSON.stringify(CONFIG).length));
      }
      return url.includes('/blobs/');
    };
    await assert.rejects(readConfig(registry), { code: 'digest-mismatch' });
  });
});
