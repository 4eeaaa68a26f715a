// Commands on a real registry, as their users run them.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../src/modules/index.ts';
import { type CommandResult, portcullis } from '../cli/command.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { guest, moduleBytes } from '../server/harness.ts';
import { Registry } from './registry-lab.ts';

const accept = await moduleBytes(guest('accept'));

describe('commands on a registry', { skip: skipWithoutRegistry(), timeout: 120_000 }, () => {
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
      const verdict = await run('run', reference(), '-r', 'examples/required-labels/requests/rejected.json');
      assert.match(verdict.stdout, /"allowed":\s*true/, verdict.stderr);
      assert.match(verdict.stderr, /using the cached copy of registry:/);
    } finally {
      await registry.resume();
    }
  });

  it('say what is wrong', async () => {
    const { code, stderr } = await run('pull', reference('v2'));
    assert.equal(code, 1);
    assert.match(stderr, /answered 404 \(MANIFEST_UNKNOWN\): expected 200\. There is no such module/);
    const anonymous = await run('pull', reference(), '--docker-config-json-path', join(folder, 'none.json'));
    assert.match(anonymous.stderr, /answered 401 \(UNAUTHORIZED\)/);
  });
});
