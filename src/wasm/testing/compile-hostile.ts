// Compiles generated hostile modules as the loader does, and prints what each took as a line of JSON:
// compile-hostile.ts SEED COUNT, or a shape as JSON.
import { setFlagsFromString } from 'node:v8';
import fc from 'fast-check';
import { parseJson } from '../../values/index.ts';
import { compileModule } from '../instrumentation/compile.ts';
import { WasmError } from '../binary/errors.ts';
import { peakMemory } from './peak-memory.ts';
import { HARMLESS, HOSTILE_SHAPES, hostileModule } from './hostile-module.ts';
import type { HostileShape } from './hostile-module.ts';

const KIB = 1024;
const [seed = '', count] = process.argv.slice(2);
const shapes =
  count === undefined
    ? [{ ...HARMLESS, ...(parseJson(seed) as Partial<HostileShape>) }]
    : fc.sample(HOSTILE_SHAPES, { seed: Number(seed), numRuns: Number(count) });
// In the server, V8 compiles each function when it is first called.
setFlagsFromString('--no-wasm-lazy-compilation');
compile(hostileModule(HARMLESS));
const before = peakMemory();
for (const shape of shapes) {
  const module = hostileModule(shape);
  const outcome = compile(module);
  const line = JSON.stringify({ shape, bytes: module.length, peakBytes: peakMemory() - before, ...outcome });
  process.stdout.write(`${line}\n`);
}

function compile(module: Uint8Array): { readonly code: string; readonly rewrittenBytes: number } {
  try {
    const { shape } = compileModule(module, { memoryLimitBytes: 64 * KIB * KIB, isolation: 'restore' });
    return { code: 'compiled', rewrittenBytes: shape.rewrittenBytes };
  } catch (error) {
    if (error instanceof WasmError) {
      return { code: error.code, rewrittenBytes: 0 };
    }
    throw error;
  }
}
