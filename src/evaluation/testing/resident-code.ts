// Started by memory-budget.test.ts with V8's lazy compilation off: what copies of a module take when all of their functions are
// compiled. Prints a JSON object.
// Arguments: FILE COPIES
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CompiledModule, compileModule } from '../../wasm/index.ts';

/** The first copies also take what compilers and the heap keep for later ones. */
const WARM_UP = 3;

const DATA_SECTION = 11;
const HEADER_BYTES = 8;

const original = readFileSync(process.argv[2] ?? '');
const copies = Number(process.argv[3]);
const dataEnd = endOfData();

function endOfData(): number {
  let at = HEADER_BYTES;
  while (at < original.length) {
    const id = original[at++];
    let size = 0;
    for (let shift = 0, more = true; more; shift += 7) {
      const byte = original[at++] ?? 0;
      size |= (byte & 0x7f) << shift;
      more = byte >= 0x80;
    }
    at += size;
    if (id === DATA_SECTION) {
      return at;
    }
  }
  throw new Error('the module has no data');
}

/** A module that V8 takes for another one: the last byte of its data differs. */
function copy(number: number): CompiledModule {
  const bytes = Buffer.from(original);
  bytes[dataEnd - 1] = number;
  return compileModule(bytes, { memoryLimitBytes: 2 ** 26, isolation: 'restore' });
}

async function residentBytes(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    globalThis.gc?.();
    await sleep(100);
  }
  return process.memoryUsage.rss();
}

const kept = Array.from({ length: WARM_UP }, (_, index) => copy(index));
const before = await residentBytes();
kept.push(...Array.from({ length: copies }, (_, index) => copy(WARM_UP + index)));
const after = await residentBytes();
process.stdout.write(JSON.stringify({ residentBytes: (after - before) / copies, shape: kept.at(-1)?.shape }));
