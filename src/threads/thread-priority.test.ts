import assert from 'node:assert/strict';
import { once } from 'node:events';
import { getPriority } from 'node:os';
import { it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { nativeThreadId } from './processor-time.ts';
import { runInBackground } from './thread-priority.ts';

it('of one thread gives way to the others', { skip: process.platform !== 'linux' }, async () => {
  const main = nativeThreadId() ?? 0;
  const before = getPriority(main);
  const code = `
    const { getPriority } = require('node:os');
    const { parentPort } = require('node:worker_threads');
    Promise.all(['thread-priority.ts', 'processor-time.ts'].map((file) => import('${new URL('.', import.meta.url).href}' + file)))
      .then(([{ runInBackground }, { nativeThreadId }]) => {
        runInBackground(nativeThreadId());
        parentPort.postMessage(getPriority(nativeThreadId()));
      });
  `;
  const worker = new Worker(code, { eval: true });
  const [priority] = (await once(worker, 'message')) as [number];
  assert.ok(priority > before);
  assert.equal(getPriority(main), before);
});

it('of no thread changes, where the id of one is not known', { skip: process.platform !== 'linux' }, () => {
  const before = getPriority(nativeThreadId());
  runInBackground(undefined);
  assert.equal(getPriority(nativeThreadId()), before);
});
