// Catalogues of network providers in registries: pushed, pinned, verified, cached.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../src/modules/index.ts';
import { TestRegistry } from '../../src/modules/testing/test-registry.ts';
import { keySigner, signatureLayer, attachLayers } from '../../src/modules/testing/test-signer.ts';
import { portcullis } from './command.ts';

const REPOSITORY = 'catalogues/network-providers';
const RANGE = JSON.stringify({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'range', namespace: 'shop' },
  spec: { policyTypes: ['Egress'], egress: [{ ports: [{ port: 30_000, endPort: 32_000 }] }] },
});

/** What later versions of the format have. */
const FAULTS = `name: mine
title: Mine
latest: 2.0.0
checked: '2026-11-29'
settings:
  strict: {default: 'false', where: ConfigMap mine}
detect:
  agents: [{container: mine-agent}]
  kubeletVersions: [{kubelet: '>=1.30.0', namespace: kube-system, version: '>=1.4.0'}]
defects:
  - ids: [CVE-2026-11111]
    features: [EndPort]
    versions: '<1.4.0 || >=1.5.0 <1.5.3'
    when: [[EgressToAnyPeer, WithNumber]]
    settings: [{setting: strict, is: 'false'}]
    effect: FailOpen
    summary: allows all ports
    evidence: Code
    sources: [https://example.com/a]
features:
  Enforcement: [{versions: '*', support: Supported, evidence: Inferred}]
  Egress: [{versions: '*', support: Supported, evidence: Inferred}]
  EndPort: [{versions: '*', support: Supported, evidence: Inferred}]
  PortCount: [{versions: '*', support: Supported, evidence: Inferred}]
`;

/** A catalogue in which no version of Cilium has endPort. */
function catalogueFile(name: string, more = ''): string {
  return `name: ${name}
checked: '2026-11-24'
${more}
features:
  EndPort: [{versions: '*', support: Unsupported, effect: FailOpen, evidence: Inferred}]
`;
}

describe('a catalogue of network providers in a registry', () => {
  let folder = '';
  let registry: TestRegistry;
  let flags: readonly string[] = [];
  const run = (args: readonly string[], stdin = '') => portcullis([...args, ...flags], { stdin });
  const check = (catalogue: string, ...more: readonly string[]) =>
    run(['netpol', 'check', '-f', '-', '--provider', 'my-cilium@1.20.0', '--catalogue', catalogue, ...more], RANGE);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-catalogue-'));
    registry = await TestRegistry.start();
    await mkdir(join(folder, 'catalogue'));
    await writeFile(join(folder, 'catalogue', 'a.yaml'), catalogueFile('cilium'));
    await writeFile(join(folder, 'catalogue', 'b.yml'), 'name: my-cilium\ninherits: cilium\n');
    await writeFile(join(folder, 'catalogue', 'README.md'), 'no catalogue');
    await writeFile(join(folder, 'sources.yml'), JSON.stringify({ insecure_sources: [registry.host] }));
    flags = ['--sources-path', join(folder, 'sources.yml')];
  });
  after(async () => {
    await registry[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  it('is pushed from a folder with a type of its own, and used by digest, also while the registry is down', async () => {
    const pushed = await run(['push', join(folder, 'catalogue'), `registry://${registry.host}/${REPOSITORY}:v1`]);
    assert.equal(pushed.code, 0, pushed.stderr);
    const [pinned = ''] = /registry:\/\/\S+@sha256:[0-9a-f]{64}/.exec(pushed.stdout) ?? [];
    const manifest = JSON.parse(
      Buffer.from(registry.stored(`${REPOSITORY}/manifests/v1`) ?? assert.fail()).toString('utf8'),
    ) as { artifactType: string; layers: { mediaType: string; annotations: object }[] };
    assert.equal(manifest.artifactType, 'application/vnd.portcullis.network-providers.v1');
    assert.deepEqual(
      manifest.layers.map(({ mediaType, annotations }) => [mediaType, annotations]),
      [
        [
          'application/vnd.portcullis.network-providers.v1+yaml',
          { 'org.opencontainers.image.title': 'network-providers.yaml' },
        ],
      ],
    );
    const first = await check(pinned);
    assert.match(first.stdout, /^shop\/range +False +FailOpen +my-cilium 1\.20\.0 allows more than /m);
    assert.doesNotMatch(first.stderr, /a tag can move/);
    registry.intercept = (_, response) => Boolean(response.writeHead(503).end());
    try {
      assert.equal((await check(pinned)).stdout, first.stdout);
    } finally {
      registry.intercept = () => false;
    }
  });

  it('brings faults of releases, uses that come together, and versions by kubelets', async () => {
    const file = join(folder, 'faults.yaml');
    await writeFile(file, FAULTS);
    const reference = `registry://${registry.host}/${REPOSITORY}:faults`;
    const pushed = await run(['push', file, reference]);
    assert.equal(pushed.code, 0, pushed.stderr);
    const judged = async (provider: string, catalogue = reference): Promise<string> =>
      (await run(['netpol', 'check', '-f', '-', '--provider', provider, '--catalogue', catalogue], RANGE)).stdout;
    assert.match(
      await judged('mine@1.5.2'),
      /^shop\/range +False +FailOpen +Mine 1\.5\.2 allows all ports \(CVE-2026-11111, versions <1\.4\.0 \|\| >=1\.5\.0 <1\.5\.3, strict is "false"\); strict is "false" by default$/m,
    );
    assert.match(await judged('mine@1.5.2,strict=true'), /1 accepted, 0 not/);
    assert.match(await judged('mine@1.5.3'), /1 accepted, 0 not/);
    assert.match(await judged('mine@>=1.4.0'), /^shop\/range +Unknown .*it may be one that allows all ports/m);
  });

  it('is read from a folder that is a mounted ConfigMap', async () => {
    const mount = join(folder, 'mount');
    await mkdir(join(mount, '..2026_11_29'), { recursive: true });
    await writeFile(join(mount, '..2026_11_29', 'mine.yaml'), FAULTS);
    await symlink('..2026_11_29', join(mount, '..data'));
    await symlink('..data/mine.yaml', join(mount, 'mine.yaml'));
    const args = ['netpol', 'check', '-f', '-', '--provider', 'mine@1.5.2', '--catalogue', mount];
    const { stdout, stderr } = await run(args, RANGE);
    assert.match(stdout, /CVE-2026-11111/, stderr);
  });

  it('is named by its digest when a tag names it', async () => {
    const { stderr } = await check(`registry://${registry.host}/${REPOSITORY}:v1`);
    assert.match(stderr, /^note: a tag can move; this catalogue is registry:\/\/\S+@sha256:[0-9a-f]{64}$/m);
  });

  it('must have the signatures that are asked for', async () => {
    const signer = keySigner();
    const key = join(folder, 'key.pub');
    await writeFile(key, signer.publicKey);
    const tag = `registry://${registry.host}/${REPOSITORY}:v1`;
    const unsigned = await check(tag, '-k', key);
    assert.deepEqual([unsigned.code, /no signature/.test(unsigned.stderr)], [1, true], unsigned.stderr);
    const digest = digestOf(registry.stored(`${REPOSITORY}/manifests/v1`) ?? assert.fail());
    attachLayers(registry, REPOSITORY, digest, [signatureLayer(signer, digest)]);
    const signed = await check(tag, '-k', key);
    assert.match(signed.stdout, /^shop\/range +False +FailOpen/m, signed.stderr);
    const file = await check(join(folder, 'catalogue'), '-k', key);
    assert.deepEqual([file.code, /cannot be verified/.test(file.stderr)], [2, true], file.stderr);
  });

  it('is refused before the push when it has mistakes', async () => {
    const file = join(folder, 'wrong.yaml');
    await writeFile(file, catalogueFile('cilium', 'latests: 1.0.0'));
    const { code, stderr } = await run(['push', file, `registry://${registry.host}/${REPOSITORY}:wrong`]);
    assert.equal(code, 1);
    assert.match(stderr, /wrong\.yaml: latests: unknown key "latests" in a provider: did you mean "latest"\?/);
    assert.equal(registry.stored(`${REPOSITORY}/manifests/wrong`), undefined);
  });

  it('is not taken from an artifact with a module, or one that is too large', async () => {
    registry.push('policies/one', 'v1', Buffer.from('\0asm\u0001\0\0\0'));
    const module = await check(`registry://${registry.host}/policies/one:v1`);
    assert.deepEqual(
      [module.code, /contains no provider catalogue: expected a layer of the media type/.test(module.stderr)],
      [1, true],
      module.stderr,
    );
    const layerType = 'application/vnd.portcullis.network-providers.v1+yaml';
    registry.push('catalogues/large', 'v1', Buffer.alloc(1024 * 1024 + 1, ' '), layerType);
    const large = await check(`registry://${registry.host}/catalogues/large:v1`);
    assert.match(large.stderr, /is too large: expected at most 1048576 bytes, got 1048577/);
  });
});
