import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HARMLESS, hostileModule } from './testing/hostile-module.ts';
import { tryCompilation } from './trial-compilation.ts';

const MIB = 1024 * 1024;
const DOUBTS = { functions: new Set([0]), shown: 'function 0 has 5 loops' };
const AMPLE = { memoryBytes: 512 * MIB, processorMs: 20_000 };
/** 4 million values, which take some 50 MiB. */
const LARGE = hostileModule({ ...HARMLESS, locals: 5_000, blocks: 'if', nesting: 400 });

describe('A trial compilation', () => {
  it('accepts what stays within its limits', () => {
    tryCompilation(LARGE, DOUBTS, AMPLE);
  });

  it('ends at its limit of memory, which the message has', () => {
    assert.throws(() => tryCompilation(LARGE, DOUBTS, { ...AMPLE, memoryBytes: 10 * MIB }), {
      name: 'WasmError',
      code: 'module-too-costly',
      message: 'function 0 has 5 loops; a trial compilation took more than 10 MiB',
    });
  });

  it('ends at its limit of processor time, which the message has', () => {
    const loops = hostileModule({ ...HARMLESS, blocks: 'loop', sequence: 8_000 });
    assert.throws(() => tryCompilation(loops, DOUBTS, { ...AMPLE, processorMs: 100 }), {
      message: 'function 0 has 5 loops; a trial compilation took more than 100 ms',
    });
  });

  it('that does not end by itself leaves it open whether the module is too costly', () => {
    const unreadable = new Uint8Array(8);
    assert.throws(() => tryCompilation(unreadable, DOUBTS, AMPLE), {
      code: 'trial-failed',
      message: /^function 0 has 5 loops; a trial compilation in another process did not end \(exit code 1\)/,
    });
  });

  it('compiles doubtful functions only', () => {
    tryCompilation(LARGE, { ...DOUBTS, functions: new Set() }, { ...AMPLE, memoryBytes: 30 * MIB });
  });
});
