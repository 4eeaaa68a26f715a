// Compiles the module on its standard input, and ends itself above the limits of its arguments: memory in bytes, processor
// time in milliseconds. The main thread is busy, so a second thread watches.
import { once } from 'node:events';
import { readFileSync, writeFileSync, writeSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Exceeded, type TrialLimits } from './trial-compilation.ts';

/** V8 allocates some 5 MiB meanwhile. Milliseconds. */
const INTERVAL_MS = 5;
/** Microseconds in a millisecond. */
const MICROSECONDS = 1_000;
/** A custom section: V8 compiles equal bytes only once. */
const EMPTY_SECTION = Uint8Array.of(0, 1, 0);
const STANDARD_INPUT = 0;
const STANDARD_OUTPUT = 1;

if (isMainThread) {
  const [memoryBytes, processorMs] = process.argv.slice(2).map(Number);
  await compile({ memoryBytes: memoryBytes ?? 0, processorMs: processorMs ?? 0 });
} else {
  watch(workerData);
}

async function compile(limits: TrialLimits): Promise<void> {
  endFirst();
  const module = readFileSync(STANDARD_INPUT);
  await once(new Worker(new URL(import.meta.url), { workerData: limits }), 'message');
  // All functions, where the server compiles those that are called, and one after the other, so that the memory does not depend
  // on the machine.
  setFlagsFromString('--no-wasm-lazy-compilation');
  setFlagsFromString('--wasm-num-compilation-tasks=1');
  void new WebAssembly.Module(module);
  // The optimizing compiler, which the server uses for hot functions.
  setFlagsFromString('--no-liftoff');
  void new WebAssembly.Module(Buffer.concat([module, EMPTY_SECTION]));
  process.exit(0);
}

/** When the system runs out of memory, it ends this process before the server. */
function endFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // Only Linux has it.
  }
}

function watch({ memoryBytes, processorMs }: TrialLimits): void {
  const maxBytes = process.memoryUsage.rss() + memoryBytes;
  const before = process.cpuUsage();
  const sleeper = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  parentPort?.postMessage('ready');
  for (;;) {
    Atomics.wait(sleeper, 0, 0, INTERVAL_MS);
    const { user, system } = process.cpuUsage(before);
    if (process.memoryUsage.rss() > maxBytes) {
      end(Exceeded.memory);
    } else if ((user + system) / MICROSECONDS > processorMs) {
      end(Exceeded.time);
    }
  }
}

function end(exceeded: string): void {
  writeSync(STANDARD_OUTPUT, exceeded);
  process.kill(process.pid, 'SIGKILL');
}
