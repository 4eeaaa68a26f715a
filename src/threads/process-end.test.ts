import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';

/** Far more than a thread needs from one statement to the next. Milliseconds. */
const BEGIN_MS = 1_000;

/** A process with a thread that searches for hours in native code, and ends it. */
const PROCESS = `
  const { startThread, endThreads } = await import('${new URL('./index.ts', import.meta.url).href}');
  const search = \`
    const half = 'a'.repeat(500_000);
    const part = Buffer.from(half + 'b' + half).toString('latin1');
    const text = Buffer.alloc(50_000_000, 'a').toString('latin1');
    require('node:worker_threads').parentPort.postMessage('searches');
    text.indexOf(part);\`;
  const thread = startThread(new URL('data:text/javascript,' + encodeURIComponent(
    'import { createRequire } from "node:module"; const require = createRequire("/"); ' + search)), { name: 'search' });
  thread.once('message', async () => {
    // The thread posts before it searches, and until then it can be ended.
    await new Promise((resolve) => setTimeout(resolve, ${BEGIN_MS}));
    console.log('ends');
    await endThreads();
    console.log('never');
  });
`;

describe('the end of a process', () => {
  it('waits for no thread that is in native code', { timeout: 60_000 }, async () => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', PROCESS], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    assert.deepEqual([output, signal], ['ends\n', 'SIGKILL']);
  });
});
