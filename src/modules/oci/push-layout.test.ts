import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import { type Digest, digestOf } from '../reference/digest.ts';
import type { ModuleError } from '../reference/errors.ts';
import { parseReference, type RegistryReference } from '../reference/module-reference.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { TestAuthority } from '../testing/test-authority.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { type PushedLayout, pushLayout } from './push-layout.ts';

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';
const SBOM = 'application/spdx+json';

const authority = await TestAuthority.create();
const identity = await authority.issue();
const folder = await TemporaryFolder.create();
after(() => folder[Symbol.asyncDispose]());

interface Entry {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}

/** A layout with an image for two platforms, which share a layer, and an artifact about one of them. */
class Layout {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<Layout> {
    const path = await mkdtemp(join(folder.path, 'layout-'));
    await mkdir(join(path, 'blobs', 'sha256'), { recursive: true });
    await writeFile(join(path, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
    return new Layout(path);
  }

  async blob(mediaType: string, content: object | string): Promise<Entry> {
    const bytes = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content));
    const digest = digestOf(bytes);
    await writeFile(this.file(digest), bytes);
    return { mediaType, digest, size: bytes.length };
  }

  file(digest: Digest): string {
    return join(this.path, 'blobs', 'sha256', digest.slice('sha256:'.length));
  }

  async image(architecture: string): Promise<Entry> {
    const config = await this.blob(CONFIG, { architecture, os: 'linux' });
    const layers = [await this.blob(LAYER, 'shared by all platforms'), await this.blob(LAYER, `of ${architecture}`)];
    return await this.blob(MANIFEST, { schemaVersion: 2, mediaType: MANIFEST, config, layers });
  }

  async referrer(subject: Entry): Promise<Entry> {
    const config = await this.blob('application/vnd.oci.empty.v1+json', '{}');
    const layers = [await this.blob(SBOM, '{"spdxVersion":"SPDX-2.3"}')];
    const manifest = { schemaVersion: 2, mediaType: MANIFEST, artifactType: SBOM, config, layers, subject };
    const entry: Entry & { artifactType: string } = { ...(await this.blob(MANIFEST, manifest)), artifactType: SBOM };
    return entry;
  }

  async index(...manifests: readonly object[]): Promise<void> {
    await writeFile(join(this.path, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests }));
  }
}

const tagged = (entry: Entry, tag: string): object => ({
  ...entry,
  annotations: { 'org.opencontainers.image.ref.name': tag },
});

interface Image {
  readonly layout: Layout;
  readonly index: Entry;
  readonly images: readonly Entry[];
  readonly sbom: Entry;
}

async function imageLayout(): Promise<Image> {
  const layout = await Layout.create();
  const images = [await layout.image('amd64'), await layout.image('arm64')];
  const index = await layout.blob(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests: images });
  const [amd64] = images;
  assert.ok(amd64);
  const sbom = await layout.referrer(amd64);
  await layout.index(tagged(index, '1.0.0'), sbom);
  return { layout, index, images, sbom };
}

async function push(host: string, path: string, tag = 'v1'): Promise<PushedLayout> {
  const reference = parseReference(`registry://${host}/a/image:${tag}`) as RegistryReference;
  return await pushLayout(reference, path, { sources: authority.sourcesFor(host) });
}

async function failure(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'no error',
    ({ code, message }: ModuleError) => `${code}: ${message}`,
  );
}

const storedJson = (registry: TestRegistry, place: string): unknown =>
  JSON.parse(Buffer.from(registry.stored(`a/image/manifests/${place}`) ?? '').toString());

describe('pushLayout', () => {
  it('stores the images of all platforms, with the digests that they have in the layout', async () => {
    await using registry = await TestRegistry.start(identity);
    const { layout, index, images, sbom } = await imageLayout();
    assert.deepEqual(await push(registry.host, layout.path), {
      manifest: index.digest,
      isImage: true,
      referrers: 1,
    });
    for (const { digest } of [index, ...images, sbom]) {
      assert.deepEqual(
        Buffer.from(registry.stored(`a/image/manifests/${digest}`) ?? ''),
        await readFile(layout.file(digest)),
      );
    }
    assert.deepEqual(registry.stored('a/image/manifests/v1'), registry.stored(`a/image/manifests/${index.digest}`));
  });

  it('sends a manifest after what it names, and the tag after all platforms', async () => {
    await using registry = await TestRegistry.start(identity);
    const { layout, images, sbom } = await imageLayout();
    await push(registry.host, layout.path);
    const stored = registry.paths.filter((path) => path.includes('/manifests/'));
    assert.deepEqual(
      stored.map((path) => path.split('/').at(-1)),
      [
        images[0]?.digest,
        sbom.digest,
        // Asked for, because it may list others; then written.
        `sha256-${images[0]?.digest.slice(7)}`,
        `sha256-${images[0]?.digest.slice(7)}`,
        images[1]?.digest,
        'v1',
      ],
    );
  });

  it('lists referrers under a tag where the registry has no API for them, beside those that are there', async () => {
    await using registry = await TestRegistry.start(identity);
    const { layout, images, sbom } = await imageLayout();
    const tag = `sha256-${images[0]?.digest.slice(7)}`;
    const other = {
      mediaType: MANIFEST,
      digest: digestOf(Buffer.from('a signature')),
      size: 11,
      annotations: { a: 'b' },
    };
    const list = { schemaVersion: 2, mediaType: INDEX, manifests: [other, { ...sbom, size: 1 }] };
    registry.manifest('a/image', tag, list, INDEX);
    await push(registry.host, layout.path);
    assert.deepEqual(storedJson(registry, tag), { ...list, manifests: [other, sbom] });
  });

  it('writes no such list where the registry has the API', async () => {
    await using registry = await TestRegistry.start(identity);
    const { layout, images } = await imageLayout();
    registry.intercept = ({ method }, response) => {
      if (method === 'PUT') {
        response.setHeader('oci-subject', images[0]?.digest ?? '');
      }
      return false;
    };
    await push(registry.host, layout.path);
    assert.equal(registry.stored(`a/image/manifests/sha256-${images[0]?.digest.slice(7)}`), undefined);
  });

  it('pushes the artifact with the tag, of several', async () => {
    await using registry = await TestRegistry.start(identity);
    const layout = await Layout.create();
    const [first, second] = [await layout.image('amd64'), await layout.image('arm64')];
    await layout.index(tagged(first, 'v1'), tagged(second, 'v2'));
    assert.equal((await push(registry.host, layout.path, 'v2')).manifest, second.digest);
    assert.match(
      await failure(push(registry.host, layout.path, 'v3')),
      /^source-not-found: .* has no artifact with the tag v3: .* it has v1, v2$/,
    );
  });

  it('pushes the only artifact without a tag, beside those that refer to it', async () => {
    await using registry = await TestRegistry.start(identity);
    const { layout, index, sbom } = await imageLayout();
    await layout.index(sbom, { ...index, artifactType: 'application/example' });
    assert.equal((await push(registry.host, layout.path)).manifest, index.digest);
    await layout.index();
    assert.match(await failure(push(registry.host, layout.path)), /^source-not-found: .* it has none$/);
  });

  it('is no image without the configuration of one', async () => {
    await using registry = await TestRegistry.start(identity);
    const layout = await Layout.create();
    const subject = await layout.blob(LAYER, 'any');
    await layout.index(tagged(await layout.referrer(subject), 'sbom'));
    assert.equal((await push(registry.host, layout.path)).isImage, false);
  });

  it('stores no tag when a blob is missing or has other bytes', async () => {
    await using registry = await TestRegistry.start(identity);
    const { layout } = await imageLayout();
    const layer = digestOf(Buffer.from('of arm64'));
    await writeFile(layout.file(layer), 'of arm46');
    assert.match(await failure(push(registry.host, layout.path)), /^digest-mismatch: /);
    await writeFile(layout.file(layer), 'of arm64, and more');
    assert.match(await failure(push(registry.host, layout.path)), /^size-mismatch: /);
    assert.equal(registry.stored('a/image/manifests/v1'), undefined);
  });

  it('refuses more manifests than an artifact has, and blobs that are too large', async () => {
    await using registry = await TestRegistry.start(identity);
    const layout = await Layout.create();
    const many: Entry[] = [];
    for (let count = 0; count < 201; count += 1) {
      many.push(
        await layout.blob(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests: [], annotations: { count } }),
      );
    }
    await layout.index(await layout.blob(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests: many }));
    assert.match(await failure(push(registry.host, layout.path)), /^manifest-invalid: .* more than 200 manifests/);
    const layers = [{ mediaType: LAYER, digest: digestOf(Buffer.of()), size: 2 ** 29 }];
    await layout.index(await layout.blob(MANIFEST, { schemaVersion: 2, mediaType: MANIFEST, layers }));
    assert.match(await failure(push(registry.host, layout.path)), /^module-too-large: .* at most 268435456 bytes/);
  });
});
