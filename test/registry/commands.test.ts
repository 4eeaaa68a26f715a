// Commands on a real registry, as their users run them.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../src/modules/index.ts';
import { keySigner, signatureLayer } from '../../src/modules/testing/test-signer.ts';
import { type CommandResult, portcullis, REQUEST, ROOT } from '../cli/command.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { guest, moduleBytes } from '../server/harness.ts';
import { Registry } from './registry-lab.ts';
import { PASSWORD, USER } from './registry-user.ts';
import { attachLayers } from './signatures.ts';

const accept = await moduleBytes(guest('accept'));
const unannotated = await moduleBytes(guest('no-metadata'));

describe('commands on a registry', { skip: skipWithoutRegistry(), timeout: 300_000 }, () => {
  let registry: Registry;
  let folder: string;
  let manifest: string;

  before(async () => {
    registry = await Registry.start();
    folder = await mkdtemp(join(tmpdir(), 'portcullis-registry-commands-'));
    manifest = await registry.push('policies/accept', 'v1', accept);
    const authorities = { [registry.host]: [{ type: 'Data', data: registry.ca }] };
    await writeFile(join(folder, 'sources.yml'), JSON.stringify({ source_authorities: authorities }));
  });
  after(async () => {
    await registry?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const run = (...args: readonly string[]): Promise<CommandResult> => {
    const flags = ['--sources-path', join(folder, 'sources.yml')];
    const env = { XDG_CACHE_HOME: join(folder, 'cache'), DOCKER_CONFIG: join(registry.dockerConfig, '..') };
    return portcullis([...args, ...flags], { env });
  };
  const reference = (tag = 'v1'): string => `registry://${registry.host}/policies/accept:${tag}`;

  it('print the digest of a tag', async () => {
    const { stdout, stderr } = await run('digest', reference());
    assert.equal(stdout, `registry://${registry.host}/policies/accept@${manifest}\n`, stderr);
    assert.match((await run('digest', 'https://example.com/p.wasm')).stderr, /names no module in a registry/);
  });

  it('pull, inspect and run a module, after that without the registry as well', async () => {
    const file = join(folder, 'policy.wasm');
    const pulled = await run('pull', reference(), '-o', file);
    assert.match(
      pulled.stdout,
      new RegExp(`^Pulled ${reference()} to .*, ${digestOf(accept)}, manifest ${manifest}\n$`),
    );
    assert.deepEqual(await readFile(file), accept);
    await registry.stop();
    try {
      const { code, stderr } = await run('pull', reference());
      assert.equal(code, 1);
      assert.match(stderr, /cannot be reached \(ECONNREFUSED\)/);
      const inspected = JSON.parse((await run('inspect', `${reference()}@${manifest}`, '-o', 'json')).stdout) as object;
      assert.ok('digest' in inspected && inspected.digest === digestOf(accept));
      const verdict = await run('run', reference(), '-r', REQUEST);
      assert.match(verdict.stdout, /"allowed":\s*true/, verdict.stderr);
      assert.match(verdict.stderr, /using the cached copy of registry:/);
    } finally {
      await registry.resume();
    }
  });

  it('use the credentials that a helper on PATH gives for the registry', async () => {
    const programs = join(folder, 'programs');
    await mkdir(programs);
    const script = `#!/bin/sh\nread -r host\n[ "$1 $host" = "get ${registry.host}" ] || exit 1\n`;
    const answer = JSON.stringify({ Username: USER, Secret: PASSWORD });
    const helper = (name: string, text: string): Promise<void> =>
      writeFile(join(programs, `docker-credential-${name}`), text, { mode: 0o755 });
    await helper('portcullis-test', `${script}echo '${answer}'\n`);
    await helper('portcullis-broken', `${script}echo '${PASSWORD}'\n`);
    const config = join(folder, 'helpers.json');
    const digest = async (name: string): Promise<CommandResult> => {
      await writeFile(config, JSON.stringify({ credHelpers: { [registry.host]: name } }));
      const flags = ['--sources-path', join(folder, 'sources.yml'), '--docker-config-json-path', config];
      const env = { PATH: `${programs}${delimiter}${process.env['PATH'] ?? ''}` };
      return await portcullis(['digest', reference(), ...flags], { env });
    };
    const { stdout, stderr } = await digest('portcullis-test');
    assert.ok(stdout.endsWith(`@${manifest}\n`), stderr);
    const broken = await digest('portcullis-broken');
    assert.match(broken.stderr, /docker-credential-portcullis-broken gave no credentials: expected JSON/);
    assert.doesNotMatch(broken.stderr, new RegExp(PASSWORD));
    assert.match(
      (await digest('portcullis-none')).stderr,
      /docker-credential-portcullis-none .* could not be run \(ENOENT\)/,
    );
  });

  it('push a policy, once, and print its immutable reference', async () => {
    const policy = 'examples/required-labels/policy.wasm';
    const destination = `${registry.host}/pushed/required-labels:v1`;
    const first = await run('push', policy, destination);
    const [, pushed = ''] =
      /^Policy successfully pushed: (registry:\S+@sha256:[0-9a-f]{64})\n$/.exec(first.stdout) ?? [];
    assert.equal((await run('digest', `registry://${destination}`)).stdout, `${pushed}\n`, first.stderr);
    const again = await run('push', pushed, `registry://${destination}`, '--output', 'json');
    assert.deepEqual(JSON.parse(again.stdout), { immutable_ref: pushed }, again.stderr);
    assert.match((await run('push', policy, destination)).stderr, /the registry had the module already/);
    const file = join(folder, 'pushed.wasm');
    await run('pull', pushed, '-o', file);
    assert.deepEqual(await readFile(file), await readFile(policy));
  });

  it('push a module without metadata only by force, and refuse destinations that are none', async () => {
    const file = join(folder, 'bare.wasm');
    await writeFile(file, Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
    const destination = `registry://${registry.host}/pushed/bare:v1`;
    const refused = await run('push', file, destination);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /has no metadata: expected an annotated policy\n.*--force pushes it without/);
    const forced = await run('push', file, destination, '--force');
    assert.match(forced.stderr, /bare\.wasm is not pushed, because no policy server would load it: .*expected/);
    const guestFile = join(folder, 'guest.wasm');
    await writeFile(guestFile, unannotated);
    assert.match((await run('push', guestFile, destination, '-f')).stdout, /^Policy successfully pushed: /);
    assert.match(
      (await run('push', guestFile, 'https://example.com/p.wasm', '-f')).stderr,
      /names no place in a registry/,
    );
    assert.match((await run('push', guestFile, `${destination}@${manifest}`)).stderr, /cannot name one/);
    const anonymous = ['--docker-config-json-path', join(folder, 'none.json')];
    assert.match(
      (await run('push', guestFile, destination, '-f', ...anonymous)).stderr,
      /answered 401: .* needs credentials/,
    );
  });

  it('save policies to a tarball, which fills a cache without network, is listed, and removed', async () => {
    const bundle = join(folder, 'bundle.tar');
    const saved = await run('save', reference(), '-o', bundle);
    assert.equal(saved.stdout, `Saved ${reference()}: ${manifest}, 0 signatures\n`, saved.stderr);
    assert.match(
      (await run('save', 'https://example.com/p.wasm', '-o', bundle)).stderr,
      /names no policy in a registry/,
    );
    const env = { XDG_CACHE_HOME: join(folder, 'other-cache') };
    const offline = (...args: readonly string[]): Promise<CommandResult> => portcullis(args, { env });
    assert.match((await offline('policies')).stderr, /^The cache is empty\./);
    const loaded = await offline('load', '--input', bundle);
    const digest = digestOf(accept);
    assert.match(
      loaded.stdout,
      new RegExp(`^Loaded ${reference()}: .*, ${digest}, manifest ${manifest}\n$`),
      loaded.stderr,
    );
    const verdict = await offline('run', `${reference()}@${manifest}`, '-r', REQUEST);
    assert.match(verdict.stdout, /"allowed":\s*true/, verdict.stderr);

    const [row] = JSON.parse((await offline('policies', '-o', 'json')).stdout) as Record<string, unknown>[];
    assert.deepEqual(
      { ...row, fetchedAt: undefined },
      { reference: reference(), digest, manifest, sizeBytes: accept.length, fetchedAt: undefined },
    );
    assert.match(
      (await offline('policies')).stdout,
      new RegExp(`^REFERENCE .*\n${reference()}   ${digest.slice(0, 19)}   .* ago\n$`),
    );
    assert.match((await offline('rm', 'registry://example.com/a:v1')).stderr, /is not in the cache\n/);
    assert.equal((await offline('rm', digest.slice(0, 12))).stdout, `Removed ${reference()}: ${digest}\n`);
    assert.equal((await offline('policies', '-o', 'json')).stdout, '[]\n');
    await writeFile(join(folder, 'empty.tar'), Buffer.alloc(1024));
    assert.match((await offline('load', '--input', join(folder, 'empty.tar'))).stderr, /index\.json, .* is not there/);
  });

  describe('that verify signatures', () => {
    const signer = keySigner();
    const verdictOf = 'examples/required-labels/requests/rejected.json';
    let key: string;
    let wrongKey: string;
    let signed: string;
    let unsigned: string;

    before(async () => {
      key = join(folder, 'cosign.pub');
      wrongKey = join(folder, 'other.pub');
      await writeFile(key, signer.publicKey);
      await writeFile(wrongKey, keySigner().publicKey);
      const digest = await registry.push('signed/accept', 'v1', accept);
      await attachLayers(registry, 'signed/accept', digest, [signatureLayer(signer, digest, { env: 'prod' })]);
      signed = `registry://${registry.host}/signed/accept:v1`;
      await registry.push('unsigned/other', 'v1', Buffer.concat([accept, Buffer.from([0, 2, 1, 0x78])]));
      unsigned = `registry://${registry.host}/unsigned/other:v1`;
    });

    it('by keys, annotations and verification.yml', async () => {
      const { stdout, stderr } = await run('verify', signed, '-k', key, '-a', 'env=prod');
      assert.match(
        stdout,
        new RegExp(`^Verified registry://${registry.host}/signed/accept@sha256:[0-9a-f]{64}\n$`),
        stderr,
      );
      const config = join(folder, 'verification.yml');
      const requirement = { kind: 'pubKey', key: signer.publicKey };
      await writeFile(config, JSON.stringify({ apiVersion: 'v1', allOf: [requirement] }));
      assert.equal((await run('verify', signed, '--verification-config-path', config)).code, 0);
      for (const [flags, message] of [
        [['-k', wrongKey], /signature/],
        [['-k', key, '-k', wrongKey], /signature/],
        [['-k', key, '-a', 'env=test'], /is not of a required key, with env=/],
        [['--github-owner', 'kubewarden'], /trust root/],
        [['--cert-email', 'a@example.com', '--cert-oidc-issuer', 'https://issuer.example.com'], /trust root/],
      ] as const) {
        const failed = await run('verify', signed, ...flags);
        assert.equal(failed.code, 1, flags.join(' '));
        assert.match(failed.stderr, message);
      }
      assert.match((await run('verify', unsigned, '-k', key)).stderr, /signature/);
    });

    it('use only modules that are signed', async () => {
      const uses: readonly (readonly string[])[] = [
        ['pull', 'MODULE'],
        ['inspect', 'MODULE'],
        ['run', 'MODULE', '-r', verdictOf],
        ['bench', 'MODULE', '-r', verdictOf, '--duration', '1'],
      ];
      for (const use of uses) {
        const withModule = (module: string): string[] => use.map((word) => (word === 'MODULE' ? module : word));
        const good = await run(...withModule(signed), '-k', key);
        assert.equal(good.code, 0, `${use[0]}: ${good.stderr}`);
        const bad = await run(...withModule(unsigned), '-k', key);
        assert.equal(bad.code, 1, use[0]);
        assert.match(bad.stderr, /signature/);
        if (use[0] !== 'pull') {
          const file = await run(...withModule('examples/required-labels/policy.wasm'), '-k', key);
          assert.match(file.stderr, /cannot be verified: only modules of registries have signatures/);
        }
      }
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } };
      const suite = join(folder, 'portcullis-test.yml');
      const text = (module: string): string =>
        JSON.stringify({ policy: { module }, cases: [{ name: 'a', object: pod, expect: { allowed: true } }] });
      await writeFile(suite, text(signed));
      const tested = await run('test', suite, '-k', key);
      assert.equal(tested.code, 0, tested.stdout + tested.stderr);
      await writeFile(suite, text(unsigned));
      const untested = await run('test', suite, '-k', key);
      assert.notEqual(untested.code, 0);
      assert.match(untested.stdout + untested.stderr, /signature/);
    });

    it('refuse flags that ask for nothing, or for too little', async () => {
      for (const [flags, message] of [
        [[], /nothing is said about who must have signed/],
        [['-a', 'env=prod'], /says nothing about who must have signed/],
        [['-a', 'env'], /Expected KEY=VALUE/],
        [['--cert-email', 'a@example.com'], /need each other/],
        [['--github-repo', 'policies'], /needs --github-owner/],
        [['--github-owner', 'a/b'], /expect names/],
        [['-k', key, '--verification-config-path', key], /cannot be combined/],
      ] as const) {
        const refused = await run('verify', signed, ...flags);
        assert.equal(refused.code, 2, flags.join(' '));
        assert.match(refused.stderr, message);
      }
      assert.match((await run('verify', signed, '-k', REQUEST)).stderr, /has no public key that can be used/);
      assert.match(
        (await run('verify', 'https://example.com/p.wasm', '-k', key)).stderr,
        /names no policy in a registry/,
      );
    });
  });

  it('work without network as docs/registries.md says', async () => {
    await registry.push('kubewarden/policies/pod-privileged', 'v1.0.8', accept);
    const place = join(folder, 'air-gapped');
    await mkdir(place);
    const online = {
      source_authorities: { [registry.host]: [{ type: 'Data', data: registry.ca }] },
      mirrors: { 'ghcr.io': [`https://${registry.host}`] },
    };
    await writeFile(join(place, 'online.yml'), JSON.stringify(online));
    const page = await readFile(join(ROOT, 'docs', 'registries.md'), 'utf8');
    const section = page.slice(page.indexOf('## Without network'), page.indexOf('## Insecure registries'));
    const [saving, using, ...others] = [...section.matchAll(/^\$ portcullis (.*)\n(.*)$/gm)];
    const [, sources = ''] = /```yaml\n(.*?)```/s.exec(section) ?? [];
    assert.ok(saving !== undefined && using !== undefined && others.length === 0);
    await writeFile(join(place, 'sources.yml'), sources);
    const expect = async ([, command = '', output = '']: RegExpExecArray, ...more: string[]): Promise<void> => {
      const env = {
        DOCKER_CONFIG: join(registry.dockerConfig, '..'),
        XDG_CACHE_HOME: join(place, 'cache'),
        // A port that refuses stands for a network that is not there.
        ...(more.length > 0 ? {} : { HTTPS_PROXY: 'http://127.0.0.1:9' }),
      };
      const { stdout, stderr } = await portcullis([...command.split(' '), ...more], { env, cwd: place });
      const [before = '', after = ''] = output.split('…');
      assert.ok(stdout.startsWith(before) && stdout.endsWith(`${after}\n`), `${stdout}${stderr}`);
    };
    await expect(saving, '--sources-path', 'online.yml');
    await expect(using);
  });

  it('say what is wrong', async () => {
    const { code, stderr } = await run('pull', reference('v2'));
    assert.equal(code, 1);
    assert.match(stderr, /answered 404 \(MANIFEST_UNKNOWN\): expected 200\. There is no such module/);
    const anonymous = await run('pull', reference(), '--docker-config-json-path', join(folder, 'none.json'));
    assert.match(anonymous.stderr, /answered 401 \(UNAUTHORIZED\)/);
  });
});
