import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import binaryen from 'binaryen';
import { createGuest, FUEL_PER_SECOND, type PolicyGuest } from '../../engine/index.ts';
import { loadPolicyModule } from '../../modules/compiling/index.ts';
import { coldMs, type CompiledCode, warmUp } from './warm-up.ts';

const KIB = 1024;
const MEMORY_BYTES = 64 * KIB * KIB;
/** Time that others wait for one who is checked in the quick thread. Seconds. */
const QUICK_SECONDS = 0.01;

/** A policy whose reviews never end, with so many bytes of data, and functions of some 700 bytes that nothing calls. */
function endless(dataBytes: number, unused: number): CompiledCode {
  const text = `(module
    (memory (export "memory") 64)
    (data (i32.const 0) "${'x'.repeat(dataBytes)}")
    ${`(func ${'(drop (i64.const 0x7fffffffffffffff))'.repeat(64)})`.repeat(unused)}
    (func (export "__guest_call") (param i32 i32) (result i32) (loop $again (br $again)) (i32.const 1)))`;
  const bytes = binaryen.parseText(text).emitBinary();
  const loaded = loadPolicyModule(bytes, { memoryLimitBytes: MEMORY_BYTES, chosenMode: 'kubewarden-wapc' });
  assert.ok('compiled' in loaded);
  return { digest: '', ...loaded };
}

/** Fuel that a guest of the module gets for the review that compiles its code. */
function fuelOf(module: CompiledCode): number {
  const guest = createGuest(module);
  let fuel = 0;
  const observed: PolicyGuest = {
    mode: guest.mode,
    start: () => guest.start(),
    checkProtocol: (context) => guest.checkProtocol(context),
    validateSettings: (...args) => guest.validateSettings(...args),
    validate: (review, context) => {
      fuel = context.limits.fuel;
      return guest.validate(review, context);
    },
  };
  warmUp(observed, module, '{}');
  return fuel;
}

describe('The review that compiles the code of a policy', () => {
  it('ends, however the policy goes on', () => {
    assert.ok(fuelOf(endless(1, 1)) > 0);
  });

  it('has no fuel for data, which costs its author nothing', () => {
    const [small, large] = [endless(1, 1), endless(1_000 * KIB, 1)];
    assert.equal(fuelOf(large), fuelOf(small));
    assert.equal(coldMs(large), coldMs(small));
  });

  it('has more fuel for more code, up to what other loads can wait for', () => {
    const most = QUICK_SECONDS * FUEL_PER_SECOND['kubewarden-wapc'];
    const [little, some, much] = [fuelOf(endless(1, 1)), fuelOf(endless(1, 30)), fuelOf(endless(1, 1_000))];
    assert.deepEqual([little < some, some < most, much], [true, true, most]);
  });
});
