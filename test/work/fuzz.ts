// Runs measure.ts, and fails with each call whose work exceeds what it charged for.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What functions of the language take without end: nothing else interrupts them. Far more than any call may. Milliseconds. */
const SILENCE_MS = 180_000;
/** Much more than a template, an expression or a builtin may use. */
const HEAP_MB = 1_500;

/** @param rounds how many families of arguments each function is called with */
export async function fuzz(targets: string, mode: 'count' | 'time', rounds: number): Promise<void> {
  const script = fileURLToPath(new URL('./measure.ts', import.meta.url));
  const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, script, targets, mode, `${rounds}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  const excesses: string[] = [];
  let [last, called] = ['', 0];
  let silence = setTimeout(() => undefined, 0);
  for await (const line of createInterface({ input: child.stdout })) {
    clearTimeout(silence);
    silence = setTimeout(() => child.kill('SIGKILL'), SILENCE_MS);
    if (line.startsWith('> ')) {
      [last, called] = [line.slice(2), called + 1];
    } else if (!line.startsWith('{"done"')) {
      excesses.push(line);
    }
  }
  clearTimeout(silence);
  const [code] = (await exit) as [number | null];
  assert.equal(code, 0, `${last} did not come to its end`);
  assert.deepEqual(excesses, []);
  assert.ok(called >= rounds, 'nothing was called');
}
