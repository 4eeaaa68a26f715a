// Modules are used only if the signatures of their artifact were verified: from registries, mirrors, peers and the cache.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';

import { type Digest, digestOf } from './reference/digest.ts';
import { ModuleError } from './reference/errors.ts';
import { parseReference, withManifest } from './reference/module-reference.ts';
import type { ModuleReference } from './reference/module-reference.ts';
import { ModuleStore } from './module-store.ts';
import type { PeerSource } from './peer-source.ts';
import { DEFAULT_SOURCES, type RegistryMirror, type SourcesConfig } from './sources/sources.ts';
import { TemporaryFolder } from './testing/temporary-folder.ts';
import { TestAuthority } from './testing/test-authority.ts';
import { testModule } from './testing/test-module.ts';
import { TestRegistry } from './testing/test-registry.ts';
import { TestServer } from './testing/test-server.ts';
import { attachLayers, BUNDLE_TYPE, keySigner, signatureLayer, statementBundle } from './testing/test-signer.ts';
import { type Verification, verificationOf } from './sources/verification.ts';

const REPOSITORY = 'policies/one';
const signer = keySigner();
const verification = verificationOf({ allOf: [{ kind: 'pubKey', key: signer.publicKey }] });
const otherVerification = verificationOf({ allOf: [{ kind: 'pubKey', owner: 'a', key: signer.publicKey }] });

describe('a module store with a verification', () => {
  let folder: TemporaryFolder;
  let authority: TestAuthority;
  let registry: TestRegistry;
  let caches = 0;

  before(async () => {
    folder = await TemporaryFolder.create();
    authority = await TestAuthority.create();
  });
  after(async () => await folder[Symbol.asyncDispose]());
  beforeEach(async (context) => {
    caches++;
    registry = await TestRegistry.start(await authority.issue());
    assert.ok('after' in context);
    context.after(async () => await registry[Symbol.asyncDispose]());
  });

  interface StoreOptions {
    /** Of the folder. Default: a new one for each test. */
    readonly cache?: string;
    readonly verification?: Verification | undefined;
    readonly peers?: PeerSource;
    readonly mirrors?: readonly RegistryMirror[];
  }

  function storeWith(options: StoreOptions = {}): ModuleStore {
    const { cache = 'cache', mirrors = [], peers } = options;
    const sources: SourcesConfig = {
      ...DEFAULT_SOURCES,
      sourceAuthorities: { [registry.host]: [{ type: 'Data', data: authority.pem }] },
      mirrors: new Map([[registry.host, mirrors]]),
      tenantHosts: [registry.host],
      tenantModules: ['*'],
    };
    const used = 'verification' in options ? options.verification : verification;
    return new ModuleStore({
      cacheDir: join(folder.path, `${cache}-${caches}`),
      sources,
      ...(used === undefined ? {} : { verification: used }),
      ...(peers === undefined ? {} : { peers }),
    });
  }

  const url = (version = ':v1'): string => `registry://${registry.host}/${REPOSITORY}${version}`;
  const attach = (digest: string, to = registry): void =>
    attachLayers(to, REPOSITORY, digest, [signatureLayer(signer, digest)]);

  /** Pushes a module; returns the digest of its manifest. */
  function push(content: string, { tag = 'v1', isSigned = true } = {}): Digest {
    const { digest } = registry.push(REPOSITORY, tag, testModule(content));
    if (isSigned) {
      attach(digest);
    }
    return digest as Digest;
  }

  /** A reference as of a revision: with the digests of the manifest and of the module. */
  function pinned(manifest: Digest, digest: Digest): ModuleReference {
    const parsed = parseReference(url());
    assert.ok(parsed.kind === 'registry');
    return { ...withManifest(parsed, manifest), digest };
  }

  function refused(code: string, message = /./): (error: unknown) => boolean {
    return (error) => {
      assert.ok(error instanceof ModuleError, String(error));
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      assert.doesNotMatch(error.tenantMessage, /sha256|signature [0-9a-f]{12}/);
      return true;
    };
  }

  it('pulls a signed module, says what verified it, and serves it from the cache when the registry is down', async () => {
    const manifest = push('one');
    const store = storeWith();
    const module = await store.fetch(url());
    assert.deepEqual([module.origin, module.manifest, module.verifiedBy], ['source', manifest, verification.id]);
    await registry[Symbol.asyncDispose]();
    for (const again of [store, storeWith()]) {
      const cached = await again.fetch(pinned(manifest, module.digest));
      assert.deepEqual([cached.origin, cached.verifiedBy], ['cache', verification.id]);
      assert.equal((await again.fetch(url(), { offline: true })).origin, 'cache');
    }
    const { origin, sourceError } = await store.fetch(url());
    assert.deepEqual([origin, sourceError?.code], ['cache', 'source-unreachable']);
  });

  it('says of no module that it was verified without a verification', async () => {
    push('one');
    assert.equal((await storeWith({ verification: undefined }).fetch(url())).verifiedBy, undefined);
  });

  it('refuses an unsigned module before it is downloaded, also for tenants', async () => {
    push('one', { isSigned: false });
    await assert.rejects(storeWith().fetch(url()), refused('signature-missing', /has no signature/));
    await assert.rejects(storeWith().fetch(url(), { isForTenant: true }), refused('signature-missing'));
    assert.ok(!registry.paths.some((path) => path.includes('/blobs/')), registry.paths.join(' '));
  });

  it('refuses modules that are not of a registry', async () => {
    const file = join(folder.path, 'module.wasm');
    await writeFile(file, testModule());
    await using server = await TestServer.start((_request, response) => response.end(testModule()));
    for (const reference of [pathToFileURL(file).href, `${server.origin}/x.wasm`]) {
      const module = await storeWith({ verification: undefined }).fetch(reference);
      await assert.rejects(storeWith().fetch(reference), refused('not-verifiable', /only modules of registries/));
      await assert.rejects(
        storeWith().fetch(`${reference}@${module.digest}`, { offline: true, verifiedBy: verification.id }),
        refused('not-verifiable'),
      );
    }
    assert.equal(server.requests, 1);
  });

  it('does not use what the cache has from a store without verification', async () => {
    const manifest = push('one', { isSigned: false });
    const { digest } = await storeWith({ verification: undefined }).fetch(url());
    for (const reference of [url(), pinned(manifest, digest)]) {
      await assert.rejects(storeWith().fetch(reference), refused('signature-missing'));
      await assert.rejects(
        storeWith().fetch(reference, { offline: true }),
        refused('not-cached', /as a verified module/),
      );
    }
  });

  it('verifies again when the verification changes', async () => {
    const manifest = push('one');
    const { digest } = await storeWith().fetch(url());
    registry.paths.length = 0;
    const module = await storeWith({ verification: otherVerification }).fetch(pinned(manifest, digest));
    assert.deepEqual([module.origin, module.verifiedBy], ['source', otherVerification.id]);
    assert.ok(registry.paths.some((path) => path.endsWith('.sig')));
    assert.ok(!registry.paths.some((path) => path.endsWith(digest)), 'the module was downloaded again');
  });

  it('refuses a tag that moved to an unsigned module, although the cache has a verified one', async () => {
    push('one');
    await storeWith().fetch(url());
    push('two', { isSigned: false });
    await assert.rejects(storeWith().fetch(url()), refused('signature-missing'));
  });

  it('refuses an unsigned artifact with a module that was verified in another artifact', async () => {
    const manifest = push('one');
    const { digest } = await storeWith().fetch(url());
    const other = registry.manifest(REPOSITORY, 'v2', {
      schemaVersion: 2,
      layers: [registry.blob(REPOSITORY, testModule('one'))],
    }).digest as Digest;
    assert.notEqual(other, manifest);
    await assert.rejects(storeWith().fetch(pinned(other, digest)), refused('signature-missing'));
  });

  it('uses the artifact that it verified, although the registry then answers with another', async () => {
    push('good');
    const evil = registry.push(REPOSITORY, 'evil', testModule('evil'));
    const good = await storeWith({ cache: 'other' }).fetch(url());
    let answers = 0;
    registry.intercept = (request, response) => {
      if (request.url?.endsWith('/manifests/v1') !== true || answers++ === 0) {
        return false;
      }
      response.writeHead(307, { location: `/v2/${REPOSITORY}/manifests/${evil.digest}` }).end();
      return true;
    };
    assert.equal((await storeWith().fetch(url())).digest, good.digest);
    assert.equal(answers, 1);
    await assert.rejects(storeWith().fetch(url()), refused('signature-missing'));
  });

  it('believes that a module was verified only by the same verification, for both of its digests', async () => {
    const manifest = push('one', { isSigned: false });
    const { digest } = await storeWith({ verification: undefined }).fetch(url());
    const both = pinned(manifest, digest);
    const module = await storeWith().fetch(both, { verifiedBy: verification.id });
    assert.deepEqual([module.origin, module.verifiedBy], ['cache', verification.id]);
    assert.equal((await storeWith().fetch(both, { verifiedBy: verification.id, offline: true })).origin, 'cache');
    const { digest: _digest, ...manifestOnly } = both;
    const moduleOnly: ModuleReference = { ...parseReference(url()), digest };
    for (const [reference, verifiedBy] of [
      [both, otherVerification.id],
      [manifestOnly, verification.id],
      [moduleOnly, verification.id],
      [url(), verification.id],
      [both, undefined],
    ] as const) {
      const options = verifiedBy === undefined ? {} : { verifiedBy };
      await assert.rejects(storeWith().fetch(reference, options), refused('signature-missing'));
    }
  });

  it('takes modules from peers only if they were verified', async () => {
    const bytes = testModule('one');
    const manifest = push('one', { isSigned: false });
    const { digest } = await storeWith({ verification: undefined, cache: 'other' }).fetch(url());
    const identity = { ...(await authority.issue('peers.example')), ca: authority.pem, requestCert: true };
    const path = (name: string): string => join(folder.path, name);
    await Promise.all([
      writeFile(path('cert'), identity.cert),
      writeFile(path('key'), identity.key),
      writeFile(path('ca'), authority.pem),
    ]);
    await using peer = await TestServer.start((_request, response) => response.end(bytes), identity);
    const peers: PeerSource = {
      certFile: path('cert'),
      keyFile: path('key'),
      caFile: path('ca'),
      serverName: 'peers.example',
      addresses: () => ({ replicas: [peer.host], controllers: [] }),
    };
    await assert.rejects(storeWith({ peers }).fetch(pinned(manifest, digest)), refused('signature-missing'));
    assert.equal(peer.requests, 0);
    const module = await storeWith({ peers }).fetch(pinned(manifest, digest), { verifiedBy: verification.id });
    assert.deepEqual([module.origin, module.verifiedBy], ['peer', verification.id]);
    // What another replica said is not recorded as verified here.
    await assert.rejects(storeWith().fetch(pinned(manifest, digest)), refused('signature-missing'));
  });

  it('passes over a mirror without signatures', async () => {
    const manifest = push('one');
    await using mirror = await TestRegistry.start();
    mirror.push(REPOSITORY, 'v1', testModule('one'));
    const mirrors: readonly RegistryMirror[] = [
      { kind: 'registry', origin: mirror.server.origin, prefix: '', shown: mirror.server.origin },
    ];
    const module = await storeWith({ mirrors }).fetch(url());
    assert.deepEqual([module.manifest, module.verifiedBy], [manifest, verification.id]);
    attach(manifest, mirror);
    registry.paths.length = 0;
    assert.equal((await storeWith({ mirrors, cache: 'other' }).fetch(url())).verifiedBy, verification.id);
    assert.deepEqual(registry.paths, []);
  });

  it('verifies artifacts of a layout by the signatures in it, tagged or not', async () => {
    const { config, layer, manifest } = layoutArtifact(testModule('one'));
    const bundle = Buffer.from(JSON.stringify(statementBundle(signer, manifest.digest)));
    const bundleLayer = { mediaType: BUNDLE_TYPE, digest: digestOf(bundle), size: bundle.length };
    const referrer = Buffer.from(
      JSON.stringify({ schemaVersion: 2, artifactType: BUNDLE_TYPE, config, layers: [bundleLayer], subject: manifest }),
    );
    const { claim, annotations } = signatureLayer(signer, manifest.digest);
    const claimLayer = {
      mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json',
      digest: digestOf(claim),
      size: claim.length,
    };
    const tagged = Buffer.from(JSON.stringify({ schemaVersion: 2, config, layers: [{ ...claimLayer, annotations }] }));
    const host = 'localhost:1';
    const named = (name: string, bytes: Buffer): object => ({
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      digest: digestOf(bytes),
      size: bytes.length,
      ...(name === '' ? {} : { annotations: { 'org.opencontainers.image.ref.name': name } }),
    });
    const artifact = named(`${host}/${REPOSITORY}:v1`, manifest.bytes);
    const layouts: readonly [name: string, signature: object[], isSigned: boolean][] = [
      ['unsigned', [], false],
      ['referrer', [named('', referrer)], true],
      ['tag', [named(`${host}/${REPOSITORY}:${manifest.digest.replace(':', '-')}.sig`, tagged)], true],
    ];
    for (const [name, signature, isSigned] of layouts) {
      const path = join(folder.path, name);
      const blobs = [layer, Buffer.from('{}'), manifest.bytes, bundle, referrer, Buffer.from(claim), tagged];
      await mkdir(join(path, 'blobs', 'sha256'), { recursive: true });
      await Promise.all([
        writeFile(join(path, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}'),
        writeFile(join(path, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [artifact, ...signature] })),
        ...blobs.map((bytes) => writeFile(join(path, 'blobs', 'sha256', digestOf(bytes).slice(7)), bytes)),
      ]);
      const store = new ModuleStore({
        cacheDir: join(folder.path, `${name}-cache`),
        sources: { ...DEFAULT_SOURCES, mirrors: new Map([[host, [{ kind: 'layout', path, shown: path }]]]) },
        verification,
      });
      const fetching = store.fetch(`registry://${host}/${REPOSITORY}:v1`);
      await (isSigned
        ? fetching.then(({ verifiedBy }) => assert.equal(verifiedBy, verification.id))
        : assert.rejects(fetching, refused('signature-missing')));
    }
  });

  it('verifies once for concurrent callers', async () => {
    push('one');
    const store = storeWith();
    const modules = await Promise.all(Array.from({ length: 20 }, async () => await store.fetch(url())));
    assert.ok(modules.every(({ verifiedBy }) => verifiedBy === verification.id));
    assert.equal(registry.paths.filter((path) => path.endsWith('.sig')).length, 1);
  });
});

/** An artifact as blobs of a layout. */
function layoutArtifact(module: Uint8Array): {
  readonly config: object;
  readonly layer: Buffer;
  readonly manifest: {
    readonly bytes: Buffer;
    readonly mediaType: string;
    readonly digest: Digest;
    readonly size: number;
  };
} {
  const config = { mediaType: 'application/vnd.oci.empty.v1+json', digest: digestOf(Buffer.from('{}')), size: 2 };
  const layer = { mediaType: 'application/wasm', digest: digestOf(module), size: module.length };
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config, layers: [layer] }));
  return {
    config,
    layer: Buffer.from(module),
    manifest: { bytes, mediaType, digest: digestOf(bytes), size: bytes.length },
  };
}
