import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { HARMLESS, hostileModule } from '../testing/hostile-module.ts';
import { wat } from '../testing/wat.ts';
import { tryCompilation } from './trial-compilation.ts';

const MIB = 1024 * 1024;
const DOUBTS = { functions: new Set([0]), shown: 'function 0 has 5 loops' };
const AMPLE = { memoryBytes: 512 * MIB, processorMs: 20_000 };
/** 4 million values, which take some 50 MiB. */
const LARGE = hostileModule({ ...HARMLESS, locals: 5_000, blocks: 'if', nesting: 400 });

/** Looks at a process that starts: for half a minute. */
const MAX_TRIES = 3_000;
/** A module without sections. */
const EMPTY_MODULE = Uint8Array.of(0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

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

  it(
    'is the first process that the system ends when it runs out of memory',
    { skip: process.platform !== 'linux' },
    async () => {
      const script = fileURLToPath(new URL('trial-process.ts', import.meta.url));
      const trial = spawn(process.execPath, [script, String(AMPLE.memoryBytes), String(AMPLE.processorMs)], {
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      const ended = once(trial, 'exit');
      const score = (): string => readFileSync(`/proc/${trial.pid}/oom_score_adj`, 'utf8').trim();
      // It waits for its module meanwhile.
      for (let tries = 0; tries < MAX_TRIES && score() !== '1000'; tries += 1) {
        await sleep(10);
      }
      assert.equal(score(), '1000');
      trial.stdin.end(EMPTY_MODULE);
      assert.deepEqual(await ended, [0, null]);
    },
  );

  it('compiles doubtful functions only', () => {
    tryCompilation(LARGE, { ...DOUBTS, functions: new Set() }, { ...AMPLE, memoryBytes: 30 * MIB });
  });

  it('measures nothing of the other functions, data and exports of a large module', () => {
    const shape = { functions: 60_000, exports: 1_000, stores: 20, dataSegments: 1_000, dataBytes: 20 * MIB };
    const module = hostileModule({ ...HARMLESS, ...shape }, Infinity);
    tryCompilation(module, { ...DOUBTS, functions: new Set([59_999]) }, { ...AMPLE, memoryBytes: 20 * MIB });
  });

  it('compiles functions that call others, and name them', () => {
    const text = `(module (type $t (func (result i32))) (import "env" "log" (func $log (param i32))) (memory 1)
      (table 2 funcref) (elem (i32.const 0) $other) (elem declare func $named) (data $d "text") (global $g (mut i32) (i32.const 1))
      (func $other (type $t) (i32.const 1)) (func $named (type $t) (i32.const 2))
      (func $doubtful (export "run") (memory.init $d (i32.const 0) (i32.const 0) (i32.const 4))
        (call $log (call $other)) (call $log (call_indirect (type $t) (i32.const 0))) (call $doubtful)
        (call $log (call_ref $t (ref.func $named))) (global.set $g (i32.const 2))))`;
    tryCompilation(wat(text), { ...DOUBTS, functions: new Set([2, 0]) }, AMPLE);
  });
});
