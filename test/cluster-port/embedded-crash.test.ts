// Acknowledged writes of an embedded cluster survive a kill of its process at any moment.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { EmbeddedCluster } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { CONFIG_MAPS } from './resource-types.ts';

const ROUNDS = 20;

/** Longest time from the first response to the kill. */
const LONGEST_RUN_MS = 250;

interface Answer {
  readonly name: string;
  readonly version: number;
  /** Undefined if it was deleted. */
  readonly text?: string;
}

test('no acknowledged write is lost when the process is killed', { timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-crash-'));
  const file = join(folder, 'cluster.db');
  /** The newest response for each object, in all rounds. */
  const answers = new Map<string, Answer>();
  let newest = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const answer of await killedRun(file)) {
        assert.ok(answer.version > newest, 'versions only grow, also after a restart');
        newest = answer.version;
        answers.set(answer.name, answer);
      }
      await using cluster = await EmbeddedCluster.open({ file, onRecovery: ({ reason }) => assert.fail(reason) });
      assert.ok(cluster.revision >= newest);
      assert.ok(cluster.revision <= newest + 1, 'one write at a time is unanswered');
      for (const answer of answers.values()) {
        compare(cluster.state.get(CONFIG_MAPS, 'default', answer.name), answer, newest, cluster.revision);
      }
      newest = cluster.revision;
      for (const name of answers.keys()) {
        const object = cluster.state.get(CONFIG_MAPS, 'default', name);
        const { text } = (object?.['data'] ?? {}) as { text?: string };
        const version = Number(object?.metadata.resourceVersion ?? newest);
        answers.set(name, { name, version, ...(text === undefined ? {} : { text }) });
      }
      for (const object of cluster.state.list(CONFIG_MAPS, 'default')) {
        const { text, copy } = object['data'] as { text?: string; copy?: string };
        assert.equal(copy, text, 'an object is as it was written, or as it was before');
      }
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** The responses before the kill. */
async function killedRun(file: string): Promise<readonly Answer[]> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./crash-writer.ts', import.meta.url)), file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  const closed = once(child, 'close');
  await Promise.race([once(child.stdout, 'data'), closed]);
  await sleep(Math.random() * LONGEST_RUN_MS);
  child.kill('SIGKILL');
  const [, signal] = (await closed) as [number | null, string | null];
  assert.equal(signal, 'SIGKILL', 'the writer ended by itself');
  // The last line may be incomplete.
  const lines = output.split('\n').slice(0, -1);
  assert.ok(lines.length > 0);
  return lines.map((line) => JSON.parse(line) as Answer);
}

/** The last write of a round may be stored without a response: then the object is newer than all responses. */
function compare(object: KubernetesObject | undefined, answer: Answer, newest: number, revision: number): void {
  const version = Number(object?.metadata.resourceVersion ?? 0);
  if (version > newest) {
    return;
  }
  if (answer.text === undefined) {
    assert.equal(object, undefined, `${answer.name} was deleted`);
    return;
  }
  if (object === undefined) {
    assert.ok(revision > newest, `${answer.name} is gone, and nothing was deleted without an answer`);
    return;
  }
  assert.equal(version, answer.version, `${answer.name} is as it was answered`);
  assert.deepEqual(object['data'], { text: answer.text, copy: answer.text });
}
