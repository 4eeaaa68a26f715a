// `portcullis serve` as a process: policies that want its memory, and an end while policies are loaded.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { ServedPolicyStatus } from '../../src/server/index.ts';
import { guest, moduleBytes, moduleVariant, requires, TestFolder, until } from '../server/harness.ts';
import { sizedModule } from '../server/sized-module.ts';
import { LoggingProcess } from './logging-process.ts';

const MIB = 2 ** 20;
/** Memory of policies in these tests. */
const POLICY_MEMORY_MIB = 96;
/**
 * What the process may use at most. It was measured to use 355 MiB; without a budget these modules take 2,000 MiB, again after
 * each restart.
 */
const MAX_RESIDENT_MIB = 700;

/** A policy server as a process. */
class ServeProcess implements AsyncDisposable {
  readonly #process: LoggingProcess;
  operations = '';

  constructor(folder: TestFolder, args: readonly string[] = []) {
    const data = ['--policies', folder.policiesFile, '--policies-download-dir', folder.dataDir];
    const ports = ['--addr', '127.0.0.1', '--port', '0', '--readiness-probe-port', '0', '--workers', '2'];
    this.#process = new LoggingProcess(['serve', ...data, ...ports, ...args]);
  }

  async ready(): Promise<void> {
    const line = await this.#process.says('policy server ready');
    this.operations = String(line['operations']);
  }

  /** The most memory that it had at a time. */
  get peakMib(): number {
    const status = readFileSync(`/proc/${this.#process.pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }

  async status(id: string): Promise<ServedPolicyStatus> {
    return (await (await fetch(`${this.operations}/policies/${id}`)).json()) as ServedPolicyStatus;
  }

  async metrics(): Promise<string> {
    return await (await fetch(`${this.operations}/metrics`)).text();
  }

  async kill(): Promise<void> {
    this.#process.signal('SIGKILL');
    await this.#process.ended();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}

describe('the memory of a policy server', () => {
  const skip = process.platform === 'linux' ? false : 'needs /proc';
  it(
    'is bounded for modules that fill theirs: they fail with the figures, and the others serve',
    { skip },
    async () => {
      await using folder = await TestFolder.create();
      const policies: Record<string, unknown> = { good: requires('app') };
      for (const index of [1, 2, 3]) {
        const file = join(folder.path, `greedy-${index}.wasm`);
        await writeFile(file, sizedModule({ seed: index, filledPages: 2048 }));
        policies[`greedy-${index}`] = { module: `file://${file}` };
      }
      await folder.write(policies);
      await using server = new ServeProcess(folder, ['--policy-memory', String(POLICY_MEMORY_MIB)]);
      await server.ready();
      assert.equal((await server.status('good')).phase, 'Active');
      for (const index of [1, 2, 3]) {
        const { phase, reason, message } = await server.status(`greedy-${index}`);
        assert.deepEqual([phase, reason], ['Error', 'MemoryExceeded']);
        assert.match(message, /holds 256\.1 MiB between calls .*expected at most 32\.0 MiB/);
      }
      assert.match(
        await server.metrics(),
        new RegExp(`^portcullis_policy_memory_budget_bytes ${POLICY_MEMORY_MIB * MIB}$`, 'm'),
      );
      assert.match(await server.metrics(), /^portcullis_policy_memory_bytes\{owner="cluster"\} [1-9]\d*$/m);
      assert.ok(server.peakMib < MAX_RESIDENT_MIB, `${server.peakMib} MiB`);
    },
  );
});

describe('a policy server that was ended while it loaded a policy', () => {
  it('serves all others at its next start, and that policy again with another module', async () => {
    await using folder = await TestFolder.create();
    const file = join(folder.path, 'deadly.wasm');
    // Its check of settings takes long enough to end the process in the middle of it.
    await writeFile(file, moduleVariant(await moduleBytes(guest('loop-in-settings')), 'deadly'));
    const deadly = { module: `file://${file}`, timeoutEvalSeconds: 60 };
    await folder.write({ good: requires('app'), deadly });
    {
      await using server = new ServeProcess(folder);
      await until(
        () => recorded(folder).includes('"deadly"'),
        () => 'the policy is being loaded',
      );
      await server.kill();
    }
    await using server = new ServeProcess(folder);
    await server.ready();
    assert.equal((await server.status('good')).phase, 'Active');
    const { phase, reason, message, nextRetry } = await server.status('deadly');
    assert.deepEqual([phase, reason], ['Error', 'Quarantined']);
    assert.match(message, /ended once while it loaded .*tries again after 20/);
    assert.ok(Date.parse(nextRetry ?? '') > Date.now());
    await writeFile(file, await moduleBytes(guest('accept')));
    await folder.write({ good: requires('app'), deadly: { module: `file://${file}`, timeoutEvalSeconds: 10 } });
    await until(
      async () => (await server.status('deadly')).phase === 'Active',
      () => 'the changed policy serves',
    );
  });
});

/** What is being loaded, by the patient thread: the quick one ends a check before the test can see it. */
function recorded({ dataDir }: TestFolder): string {
  try {
    const names = readdirSync(dataDir).filter((name) => /^loading-.*-patient\.json$/.test(name));
    return names.map((name) => readFileSync(join(dataDir, name), 'utf8')).join('');
  } catch {
    return '';
  }
}
