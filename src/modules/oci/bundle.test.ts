import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import { list } from 'tar';

import { digestOf } from '../reference/digest.ts';
import { parseReference, type RegistryReference } from '../reference/module-reference.ts';
import { ModuleStore } from '../module-store.ts';
import { DEFAULT_SOURCES, type SourcesConfig } from '../sources/sources.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { TestAuthority } from '../testing/test-authority.ts';
import { testModule } from '../testing/test-module.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { attachBundles, attachLayers, keySigner, messageBundle, signatureLayer } from '../testing/test-signer.ts';
import { verificationOf } from '../sources/verification.ts';
import { type SavedArtifact, saveBundle } from './bundle.ts';
import { pullModule } from './registry-source.ts';

const MODULE = testModule('the content of a policy');
const signer = keySigner();
const SIGNATURE = Buffer.from('a signature');
const authority = await TestAuthority.create();
const identity = await authority.issue();
const folder = await TemporaryFolder.create();
after(() => folder[Symbol.asyncDispose]());

const referenceOf = (text: string): RegistryReference => parseReference(text) as RegistryReference;

function sourcesOf({ host }: TestRegistry): SourcesConfig {
  return { ...DEFAULT_SOURCES, sourceAuthorities: { [host]: [{ type: 'Data', data: authority.pem }] } };
}

/** A registry with a signed policy `a/b:v1`; the digest is that of its manifest. */
async function signedPolicy(): Promise<{ readonly registry: TestRegistry; readonly digest: string }> {
  const registry = await TestRegistry.start(identity);
  const { digest } = registry.push('a/b', 'v1', MODULE);
  registry.push(
    'a/b',
    `${digest.replace(':', '-')}.sig`,
    SIGNATURE,
    'application/vnd.dev.cosign.simplesigning.v1+json',
  );
  return { registry, digest };
}

async function save(registry: TestRegistry, name: string, ...references: string[]): Promise<readonly SavedArtifact[]> {
  const saved: SavedArtifact[] = [];
  const path = join(folder.path, name);
  const options = { sources: sourcesOf(registry), onSaved: (artifact: SavedArtifact) => void saved.push(artifact) };
  await saveBundle(path, references.map(referenceOf), options);
  return saved;
}

/** Sources with the tarball as the only place that answers. */
function mirroredBy(host: string, name: string): SourcesConfig {
  const path = join(folder.path, name);
  return {
    ...DEFAULT_SOURCES,
    mirrors: new Map([[host, [{ kind: 'layout', path, shown: `file://${path}` }]]]),
    proxies: { httpsProxy: 'http://127.0.0.1:9' },
  };
}

describe('a bundle', () => {
  it('has policies with their signatures, and is a mirror of their registry', async () => {
    const { registry, digest } = await signedPolicy();
    await using _ = registry;
    const other = registry.push('c', 'v2', testModule('another policy'));
    const references = [`${registry.host}/a/b:v1`, `${registry.host}/c@${other.digest}`];
    assert.deepEqual(await save(registry, 'two.tar', ...references), [
      { shown: `registry://${registry.host}/a/b:v1`, digest, signatures: 1 },
      { shown: `registry://${registry.host}/c@${other.digest}`, digest: other.digest, signatures: 0 },
    ]);
    const sources = mirroredBy(registry.host, 'two.tar');
    const pull = async (reference: string): Promise<Uint8Array> =>
      (await pullModule(referenceOf(reference), { sources, maxBytes: 100_000 })).bytes;
    assert.deepEqual(await pull(references[0] ?? ''), Buffer.from(MODULE));
    assert.deepEqual(await pull(references[1] ?? ''), Buffer.from(testModule('another policy')));
    const names: string[] = [];
    await list({ file: join(folder.path, 'two.tar'), strict: true, onReadEntry: ({ path }) => void names.push(path) });
    assert.ok(names.includes(`blobs/sha256/${digestOf(SIGNATURE).slice(7)}`));
    assert.equal(new Set(names).size, names.length);
    assert.deepEqual(names.slice(-2), ['index.json', 'oci-layout']);
  });

  it('reports the progress of each module', async () => {
    await using registry = await TestRegistry.start(identity);
    registry.push('a/b', 'v1', MODULE);
    const reports: (readonly [number, number | undefined])[] = [];
    await saveBundle(join(folder.path, 'progress.tar'), [referenceOf(`${registry.host}/a/b:v1`)], {
      sources: sourcesOf(registry),
      onProgress: (received, total) => reports.push([received, total]),
    });
    assert.deepEqual(reports.at(-1), [MODULE.length, MODULE.length]);
  });

  it('is the same each time', async () => {
    const { registry } = await signedPolicy();
    await using _ = registry;
    await save(registry, 'one.tar', `${registry.host}/a/b:v1`);
    await save(registry, 'again.tar', `${registry.host}/a/b:v1`, `${registry.host}/a/b:v1`);
    const [one, again] = ['one.tar', 'again.tar'].map((name) => readFile(join(folder.path, name)));
    assert.deepEqual(await one, await again);
  });

  it('gives its policies to a cache, which then has them by tag and by digest, but not its signatures', async () => {
    const { registry, digest } = await signedPolicy();
    {
      await using _ = registry;
      await save(registry, 'cached.tar', `${registry.host}/a/b:v1`);
    }
    const store = new ModuleStore({ cacheDir: join(folder.path, 'cache') });
    for await (const module of store.load(join(folder.path, 'cached.tar'))) {
      assert.deepEqual(
        [module.url, module.digest, module.manifest],
        [`registry://${registry.host}/a/b:v1`, digestOf(MODULE), digest],
      );
    }
    for (const version of [':v1', `@${digest}`]) {
      const { bytes, manifest } = await store.fetch(`${registry.host}/a/b${version}`, { offline: true });
      assert.deepEqual([Buffer.from(bytes), manifest], [Buffer.from(MODULE), digest]);
    }
  });

  for (const [kind, attach] of [
    [
      'under a tag',
      (registry: TestRegistry, digest: string) =>
        attachLayers(registry, 'a/b', digest, [signatureLayer(signer, digest)]),
    ],
    [
      'as referrers',
      (registry: TestRegistry, digest: string) => {
        const bundle = messageBundle(signer, registry.stored(`a/b/manifests/${digest}`) ?? Buffer.of());
        return attachBundles(registry, 'a/b', digest, [bundle]);
      },
    ],
  ] as const) {
    it(`has signatures ${kind}, which are verified without network`, async () => {
      const registry = await TestRegistry.start(identity);
      {
        await using _ = registry;
        const { digest } = registry.push('a/b', 'signed', MODULE);
        attach(registry, digest);
        registry.push('a/b', 'unsigned', testModule('nobody signed this'));
        const [saved] = await save(registry, 'signed.tar', `${registry.host}/a/b:signed`);
        assert.equal(saved?.signatures, 1);
        await save(registry, 'unsigned.tar', `${registry.host}/a/b:unsigned`);
      }
      const verification = verificationOf({ allOf: [{ kind: 'pubKey', key: signer.publicKey }] });
      const storeOn = (name: string): ModuleStore =>
        new ModuleStore({
          cacheDir: join(folder.path, `${name} ${kind}`),
          sources: mirroredBy(registry.host, name),
          verification,
        });
      const { verifiedBy } = await storeOn('signed.tar').fetch(`${registry.host}/a/b:signed`);
      assert.equal(verifiedBy, verification.id);
      await assert.rejects(storeOn('unsigned.tar').fetch(`${registry.host}/a/b:unsigned`), {
        code: 'signature-missing',
      });
      const other = storeOn('none.tar');
      const load = async (name: string): Promise<void> => {
        for await (const module of other.load(join(folder.path, name))) {
          assert.equal(module.verifiedBy, verification.id);
        }
      };
      await load('signed.tar');
      assert.equal((await other.fetch(`${registry.host}/a/b:signed`, { offline: true })).verifiedBy, verification.id);
      await assert.rejects(load('unsigned.tar'), { code: 'signature-missing' });
    });
  }

  it('leaves out what refers to an artifact and is no signature', async () => {
    const { registry, digest } = await signedPolicy();
    await using _ = registry;
    const sbom = {
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      artifactType: 'application/spdx+json',
      digest,
      size: 1,
    };
    registry.manifest(
      'a/b',
      digest.replace(':', '-'),
      { schemaVersion: 2, manifests: [sbom] },
      'application/vnd.oci.image.index.v1+json',
    );
    const [saved] = await save(registry, 'sbom.tar', `${registry.host}/a/b:v1`);
    assert.equal(saved?.signatures, 1);
  });

  it('is not written if an artifact cannot be had, and an older one stays', async () => {
    const { registry } = await signedPolicy();
    await using _ = registry;
    registry.push('text', 'v1', MODULE, 'text/plain');
    await writeFile(join(folder.path, 'old.tar'), 'the older one');
    for (const [reference, code] of [
      ['a/b:v2', 'source-not-found'],
      ['text:v1', 'media-type-unsupported'],
    ]) {
      const work = save(registry, 'old.tar', `${registry.host}/a/b:v1`, `${registry.host}/${reference}`);
      await assert.rejects(work, { code });
    }
    assert.equal(await readFile(join(folder.path, 'old.tar'), 'utf8'), 'the older one');
    assert.deepEqual(
      (await readdir(folder.path)).filter((name) => name.endsWith('.tmp')),
      [],
    );
    const missing = saveBundle(join(folder.path, 'no', 'folder.tar'), [], { sources: DEFAULT_SOURCES });
    await assert.rejects(missing, { code: 'file-unreadable', message: /cannot be written \(ENOENT\)/ });
  });

  it('is refused if signatures cannot be looked up, or refer to more than anybody signs', async () => {
    const { registry, digest } = await signedPolicy();
    await using _ = registry;
    const tag = `${digest.replace(':', '-')}.sig`;
    registry.intercept = ({ url }, response) => {
      const isSignature = url?.endsWith(tag) === true;
      if (isSignature) {
        response.writeHead(500).end();
      }
      return isSignature;
    };
    await assert.rejects(save(registry, 'x.tar', `${registry.host}/a/b:v1`), { code: 'source-failed' });
    registry.intercept = () => false;
    const blob = registry.blob('a/b', SIGNATURE);
    const manifest = { schemaVersion: 2, layers: [{ ...blob, size: 300 * 1024 * 1024 }] };
    registry.manifest('a/b', tag, manifest);
    await assert.rejects(save(registry, 'x.tar', `${registry.host}/a/b:v1`), {
      code: 'module-too-large',
      message: /with its signatures, more than/,
    });
    registry.manifest(
      'a/b',
      tag,
      { schemaVersion: 2, manifests: Array.from({ length: 201 }, () => ({ mediaType: 'x', digest, size: 1 })) },
      'application/vnd.oci.image.index.v1+json',
    );
    await assert.rejects(save(registry, 'x.tar', `${registry.host}/a/b:v1`), { message: /more than 200 manifests/ });
  });
});
