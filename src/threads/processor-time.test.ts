import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { nativeThreadId, threadCpuMs } from './processor-time.ts';

const isLinux = process.platform === 'linux';

it('is known of a thread in native code, which answers no question', { skip: !isLinux }, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'processor-time-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const source = new URL('./processor-time.ts', import.meta.url).href;
  const code = `
    import { readFileSync } from 'node:fs';
    import { parentPort } from 'node:worker_threads';
    import { nativeThreadId } from '${source}';
    parentPort.postMessage(nativeThreadId());
    readFileSync('${pipe}');
  `;
  const script = join(folder, 'thread.mjs');
  writeFileSync(script, code);
  const worker = new Worker(script);
  const [id] = (await once(worker, 'message')) as [number];
  assert.notEqual(id, nativeThreadId());
  assert.ok((threadCpuMs(id) ?? 0) > 0);
  const exit = once(worker, 'exit');
  // Ends the read.
  writeFileSync(pipe, '');
  await exit;
  assert.equal(threadCpuMs(id), undefined);
});

it('of the current thread grows', { skip: !isLinux }, () => {
  const own = nativeThreadId() ?? 0;
  const before = threadCpuMs(own) ?? Infinity;
  let pid = 0;
  for (let turn = 0; turn < 1e6; turn += 1) {
    pid += process.pid;
  }
  assert.ok((threadCpuMs(own) ?? 0) > before && pid > 0);
});
