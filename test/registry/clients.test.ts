// What we write to registries and tarballs, oras and crane read; what they write, we read.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../src/modules/index.ts';
import { keySigner, signatureLayer, statementBundle } from '../../src/modules/testing/test-signer.ts';
import { portcullis, ROOT, run } from '../cli/command.ts';
import { goProgramPath, type RegistryClientProgram, skipWithoutRegistryClients } from '../cluster/binaries.ts';
import { Registry } from './registry-lab.ts';
import { attachBundles, attachLayers } from './signatures.ts';

const POLICY = 'examples/required-labels/policy.wasm';
const LAYER_TYPE = 'application/vnd.wasm.content.layer.v1+wasm';

describe('artifacts', { skip: skipWithoutRegistryClients(), timeout: 300_000 }, () => {
  let registry: Registry;
  let folder: string;
  let policy: Buffer;
  /** Of the artifact that our command pushed. */
  let manifest: string;
  let pushed: string;

  before(async () => {
    registry = await Registry.start();
    folder = await mkdtemp(join(tmpdir(), 'portcullis-registry-clients-'));
    policy = await readFile(POLICY);
    await writeFile(join(folder, 'policy.wasm'), policy);
    await writeFile(join(folder, 'ca.crt'), registry.ca);
    const authorities = { [registry.host]: [{ type: 'Data', data: registry.ca }] };
    await writeFile(join(folder, 'sources.yml'), JSON.stringify({ source_authorities: authorities }));
    pushed = `${registry.host}/ours/policy:v1`;
    const { stdout, stderr } = await portcullis(['push', POLICY, pushed, ...sourcesFlags()], { env: environment() });
    manifest = /sha256:[0-9a-f]{64}/.exec(stdout)?.[0] ?? assert.fail(stderr);
  });
  after(async () => {
    await registry?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const sourcesFlags = (): string[] => ['--sources-path', join(folder, 'sources.yml')];
  const environment = (): Record<string, string> => ({
    XDG_CACHE_HOME: join(folder, 'cache'),
    DOCKER_CONFIG: join(registry.dockerConfig, '..'),
    SSL_CERT_FILE: join(folder, 'ca.crt'),
  });

  /** Runs our command, and returns its output. */
  async function ours(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await portcullis(args, { env: environment(), cwd: folder });
    assert.equal(code, 0, `portcullis ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  async function client(program: RegistryClientProgram, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await run(goProgramPath(program), args, { env: environment(), cwd: folder });
    assert.equal(code, 0, `${program} ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  /** Pulls a module with our command. */
  async function pulled(reference: string, ...flags: readonly string[]): Promise<Buffer> {
    await ours('pull', `registry://${reference}`, '-o', 'pulled.wasm', ...flags);
    return await readFile(join(folder, 'pulled.wasm'));
  }

  it('that we push are pulled by oras and crane', async () => {
    await client('oras', 'pull', pushed, '--plain-http=false', '-o', 'from-oras');
    assert.deepEqual(await readFile(join(folder, 'from-oras', 'policy.wasm')), policy);
    assert.equal((await client('crane', 'digest', pushed)).trim(), manifest);
    await client('crane', 'copy', pushed, `${registry.host}/crane/copy:v1`);
    assert.equal((await client('crane', 'digest', `${registry.host}/crane/copy:v1`)).trim(), manifest);
    assert.deepEqual(await pulled(`${registry.host}/crane/copy:v1`, ...sourcesFlags()), policy);
  });

  it('that oras pushes are pulled by us', async () => {
    const reference = `${registry.host}/oras/policy:v1`;
    await client('oras', 'push', '--plain-http=false', reference, `policy.wasm:${LAYER_TYPE}`);
    assert.deepEqual(await pulled(reference, ...sourcesFlags()), policy);
  });

  it('that we save to a tarball are read by oras and crane', async () => {
    await ours('save', `registry://${pushed}`, '-o', 'ours.tar', ...sourcesFlags());
    const copy = `${registry.host}/oras/from-tarball:v1`;
    await client('oras', 'cp', '--from-oci-layout', `ours.tar@${manifest}`, copy, '--to-plain-http=false');
    assert.equal((await client('crane', 'digest', copy)).trim(), manifest);
    await mkdir(join(folder, 'unpacked'));
    await run('tar', ['-xf', join(folder, 'ours.tar'), '-C', join(folder, 'unpacked')]);
    await client('crane', 'push', 'unpacked', `${registry.host}/crane/from-tarball:v1`);
    assert.equal((await client('crane', 'digest', `${registry.host}/crane/from-tarball:v1`)).trim(), manifest);
  });

  it('that we save are copied with their signatures as docs/registries.md says', async () => {
    const page = await readFile(join(ROOT, 'docs', 'registries.md'), 'utf8');
    const commands = [...page.matchAll(/`oras (cp [^`]*)`/g)].map(([, command = '']) => command);
    assert.equal(commands.length, 2);
    const signer = keySigner();
    await writeFile(join(folder, 'cosign.pub'), signer.publicKey);
    const size = Buffer.byteLength(await client('crane', 'manifest', pushed));
    for (const [layout, attach] of [
      ['layers', () => attachLayers(registry, 'signed/layers', manifest, [signatureLayer(signer, manifest)])],
      ['bundles', () => attachBundles(registry, 'signed/bundles', manifest, [statementBundle(signer, manifest)], size)],
    ] as const) {
      const reference = `${registry.host}/signed/${layout}:v1`;
      await client('crane', 'copy', pushed, reference);
      await attach();
      const saved = await ours('save', `registry://${reference}`, '-o', 'policies.tar', ...sourcesFlags());
      assert.match(saved, /, 1 signature\n$/);
      const copy = `${registry.host}/copied/${layout}`;
      for (const command of commands.filter((one) => layout === 'layers' || !one.includes('.sig'))) {
        const args = command
          .replaceAll('registry.example.com/policies/pod-privileged', copy)
          .replaceAll('ghcr.io/kubewarden/policies/pod-privileged', `${registry.host}/signed/${layout}`)
          .replaceAll('sha256:…', manifest)
          .replaceAll('sha256-…', manifest.replace(':', '-'));
        await client('oras', ...args.split(' '), '--to-plain-http=false');
      }
      const verified = await ours('verify', `registry://${copy}:v1.0.8`, '-k', 'cosign.pub', ...sourcesFlags());
      assert.equal(verified, `Verified registry://${copy}@${manifest}\n`);
    }
  });

  it('that oras and crane save are pushed by us, with what refers to them', async () => {
    const subject = `${registry.host}/ours/with-notes`;
    await client('crane', 'copy', pushed, `${subject}:v1`);
    await writeFile(join(folder, 'notes.txt'), 'what is in it');
    await client('oras', 'attach', '--plain-http=false', '--artifact-type', 'text/notes', `${subject}:v1`, 'notes.txt');
    await client('oras', 'cp', '-r', '--from-plain-http=false', `${subject}:v1`, '--to-oci-layout', 'with-notes:v1');
    await client('crane', 'pull', '--format=oci', pushed, 'saved');
    await run('tar', ['-cf', join(folder, 'saved.tar'), '-C', join(folder, 'saved'), '.']);
    for (const layout of ['with-notes', 'saved', 'saved.tar']) {
      const copy = `${registry.host}/pushed/${layout}`;
      const said = await ours('push', layout, `registry://${copy}:v1`, ...sourcesFlags());
      assert.equal(said, `Artifact successfully pushed: registry://${copy}@${manifest}\n`);
      assert.equal((await client('crane', 'digest', `${copy}:v1`)).trim(), manifest);
    }
    const copied = `${registry.host}/pushed/with-notes:v1`;
    assert.match(await client('oras', 'discover', '--plain-http=false', copied), /text\/notes/);
  });

  it('that oras and crane save are mirrors, as a folder and as a tarball', async () => {
    await client('oras', 'cp', '--from-plain-http=false', pushed, '--to-oci-layout', 'oras-layout:v1');
    await client('crane', 'pull', '--format=oci', '--annotate-ref', pushed, 'crane-layout');
    for (const layout of ['oras-layout', 'crane-layout']) {
      const { code, stderr } = await run('tar', [
        '-cf',
        join(folder, `${layout}.tar`),
        '-C',
        join(folder, layout),
        '.',
      ]);
      assert.equal(code, 0, stderr);
      for (const path of [layout, `${layout}.tar`]) {
        const mirrors = { 'registry.example.com': [`file://${join(folder, path)}`] };
        // oras names the tag only; crane names the registry that it pulled from.
        const named = layout === 'oras-layout' ? 'registry.example.com/ours/policy:v1' : pushed;
        const host = named.split('/', 1)[0] ?? '';
        await writeFile(
          join(folder, 'mirror.yml'),
          JSON.stringify({ mirrors: { ...mirrors, [host]: Object.values(mirrors)[0] } }),
        );
        const resolved = await ours('digest', `registry://${named}`, '--sources-path', 'mirror.yml');
        assert.ok(resolved.endsWith(`@${manifest}\n`), `${path}: ${resolved}`);
        assert.deepEqual(await pulled(named, '--sources-path', 'mirror.yml'), policy);
      }
    }
    assert.match(await ours('load', '--input', 'crane-layout.tar'), new RegExp(`^Loaded .*${digestOf(policy)}`));
  });
});
