import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { BinaryWriter } from '../binary/binary-writer.ts';
import { compileModule, MAX_MODULE_BYTES } from './compile.ts';
import { WasmError } from '../binary/errors.ts';
import { PAGE_BYTES } from './metering.ts';
import { Immediate, PLAIN } from '../binary/opcodes.ts';
import { MAX_TABLES, PRIVATE_PREFIX } from './rewrite.ts';
import { SandboxInstance } from '../guests/sandbox.ts';
import { example, fixture, sandboxOf } from '../testing/guests.ts';
import { generatedModule } from '../testing/generated-module.ts';
import { withLargeFunctions } from '../testing/large-functions.ts';
import { wat } from '../testing/wat.ts';

const MEMORY_BYTES = 4 * 1024 * 1024;
const FUEL = 100_000_000;
const ISOLATIONS = ['fresh', 'restore'] as const;

function instanceOf(bytes: Uint8Array, isolation: 'fresh' | 'restore'): SandboxInstance {
  const instance = new SandboxInstance(compileModule(bytes, { memoryLimitBytes: MEMORY_BYTES, isolation }), {
    imports: () => ({}),
  });
  instance.setFuel(FUEL);
  return instance;
}

/** A module with one function `run` without parameters, as text. */
const CASES: Record<string, string> = {
  'integer and float arithmetic': `(module (func (export "run") (result f64)
    (f64.add (f64.convert_i64_s (i64.rotl (i64.const 77) (i64.const 3)))
      (f64.promote_f32 (f32.sqrt (f32.convert_i32_u (i32.popcnt (i32.const 255))))))))`,
  'sign extension and saturating truncation': `(module (func (export "run") (result i64)
    (i64.add (i64.extend8_s (i64.const 200)) (i64.trunc_sat_f64_s (f64.const 1e30)))))`,
  'blocks with parameters and several results': `(module (func $two (result i32 i32) (i32.const 3) (i32.const 4))
    (func (export "run") (result i32) (call $two) (block (param i32 i32) (result i32) (i32.mul))
      (loop (param i32) (result i32) (i32.const 1) (i32.add))))`,
  'br_table, select and nested ifs': `(module (func (export "run") (result i32) (local $i i32) (local $sum i32)
    (loop $l
      (block $c (block $b (block $a (br_table $a $b $c (local.get $i)))
        (local.set $sum (i32.add (local.get $sum) (i32.const 1))) (br $c))
        (local.set $sum (i32.add (local.get $sum) (i32.const 10))))
      (if (i32.and (local.get $i) (i32.const 1))
        (then (local.set $sum (i32.add (local.get $sum) (i32.const 100))))
        (else (if (local.get $i) (then (local.set $sum (i32.sub (local.get $sum) (i32.const 7)))))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 5))))
    (select (result i32) (local.get $sum) (i32.const 0) (i32.const 1))))`,
  'tail calls': `(module (type $t (func (param i32 i32) (result i32))) (table 1 funcref) (elem (i32.const 0) $count)
    (func $count (param i32 i32) (result i32)
      (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
      (return_call $other (i32.sub (local.get 0) (i32.const 1)) (i32.add (local.get 1) (i32.const 2))))
    (func $other (param i32 i32) (result i32)
      (return_call_indirect (type $t) (local.get 0) (local.get 1) (i32.const 0)))
    (func (export "run") (result i32) (call $count (i32.const 100000) (i32.const 0))))`,
  'reference types and table operations': `(module (table $t 3 8 funcref) (table $e 1 externref) (elem $seg func $a $b)
    (type $r (func (result i32)))
    (func $a (result i32) (i32.const 11)) (func $b (result i32) (i32.const 22))
    (func (export "run") (result i32)
      (table.init $t $seg (i32.const 0) (i32.const 0) (i32.const 2))
      (elem.drop $seg)
      (table.copy $t $t (i32.const 1) (i32.const 0) (i32.const 2))
      (drop (table.grow $t (ref.func $b) (i32.const 2)))
      (table.fill $e (i32.const 0) (ref.null extern) (i32.const 1))
      (table.set $t (i32.const 0) (table.get $t (i32.const 2)))
      (i32.add (i32.add (call_indirect $t (type $r) (i32.const 0)) (call_indirect $t (type $r) (i32.const 4)))
        (i32.add (table.size $t) (ref.is_null (table.get $e (i32.const 0)))))))`,
  'typed function references': `(module (memory 1)
    (rec (type $unary (func (param i32) (result i32))) (type $chooser (func (param (ref null $chooser)) (result (ref $unary)))))
    (func $double (type $unary) (i32.mul (local.get 0) (i32.const 2)))
    (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
    (func $choose (type $chooser) (if (result (ref $unary)) (ref.is_null (local.get 0))
      (then (ref.func $double)) (else (return_call_ref $chooser (ref.null $chooser) (local.get 0)))))
    (table $sure 3 (ref $unary) (ref.func $square)) (table $maybe 2 (ref null $unary))
    (elem (table $maybe) (i32.const 1) (ref $unary) (ref.func $double))
    (global $now (mut (ref $unary)) (ref.func $double)) (global $last (mut (ref null $unary)) (ref.null $unary))
    (global $made (mut (ref null $chooser)) (ref.func $choose))
    (func $count (param $f (ref null $unary)) (result i32)
      (block $null (result i32) (call_ref $unary (i32.const 1000) (br_on_null $null (i32.const 7) (local.get $f))) (return)))
    (func (export "run") (result i32) (local $f (ref $unary)) (local $sum i32)
      (local.set $f (global.get $now))
      (local.set $sum (call_ref $unary (i32.const 5) (local.get $f)))
      (local.set $sum (i32.add (local.get $sum) (call_indirect $sure (type $unary) (i32.const 6) (i32.const 2))))
      (local.set $sum (i32.add (local.get $sum) (call $count (global.get $last))))
      (global.set $last (table.get $maybe (i32.const 1)))
      (global.set $now (block $f (result (ref $unary)) (br_on_non_null $f (table.get $maybe (i32.const 0)))
        (table.get $sure (i32.const 1))))
      (local.set $sum (i32.add (local.get $sum) (call $count (global.get $last))))
      (local.set $f (call_ref $chooser (global.get $made) (ref.as_non_null (global.get $made))))
      (global.set $made (ref.null $chooser))
      (i32.store (i32.const 9000) (local.get $sum))
      (i32.add (local.get $sum) (call_ref $unary (i32.const 11) (local.get $f)))))`,
  'calls, branches and blocks of many values': `(module (memory 1)
    (type $many (func (param ${'i32 '.repeat(200)}) (result ${'i32 '.repeat(200)})))
    (func $same (type $many) ${Array.from({ length: 200 }, (_, index) => `(local.get ${index})`).join('')})
    (func (export "run") (result i32) (local i32)
      ${Array.from({ length: 200 }, (_, index) => `(i32.const ${index})`).join('')}
      call $same (block (type $many) (br_if 0 (i32.const 1)) call $same (br 0))
      ${'(local.set 0 (i32.add (local.get 0)))'.repeat(200)} (local.get 0)))`,
  'bulk memory with passive segments': `(module (memory 1) (data $d "0123456789")
    (func (export "run") (result i32)
      (memory.init $d (i32.const 4094) (i32.const 2) (i32.const 4))
      (memory.copy (i32.const 8190) (i32.const 4094) (i32.const 4))
      (memory.fill (i32.const 8194) (i32.const 7) (i32.const 9000))
      (data.drop $d)
      (i32.add (i32.load (i32.const 8190)) (i32.load (i32.const 17190)))))`,
  'SIMD, lanes and relaxed SIMD': `(module (memory 1) (func (export "run") (result i32) (local $v v128)
    (v128.store offset=4 (i32.const 4090) (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 31
      (v128.const i32x4 1 2 3 4) (i32x4.splat (i32.const 0x05060708))))
    (local.set $v (v128.load32_lane offset=4 1 (i32.const 4090) (v128.const i32x4 9 9 9 9)))
    (v128.store16_lane 2 (i32.const 12287) (local.get $v))
    (local.set $v (f32x4.relaxed_madd (local.get $v) (local.get $v) (v128.load64_zero (i32.const 4094))))
    (i32.add (i32x4.extract_lane 0 (i8x16.swizzle (local.get $v) (i8x16.splat (i32.const 1))))
      (i32.add (i32x4.extract_lane 1 (v128.bitselect (local.get $v) (local.get $v) (v128.not (local.get $v))))
        (i32.load (i32.const 12287))))))`,
  'extended constants and mutable globals': `(module (memory 1) (global $base i32 (i32.const 1000))
    (global $g (mut i32) (i32.add (i32.const 5) (i32.mul (i32.const 3) (i32.const 4))))
    (data (offset (i32.add (global.get $base) (i32.const 24))) "\\2a")
    (func (export "run") (result i32) (global.set $g (i32.add (global.get $g) (i32.load8_u (i32.const 1024)))) (global.get $g)))`,
  'code that is never reached': `(module (memory 1) (func (export "run") (result i32)
    (block $out (br $out) (i32.store (i32.const 0) (i32.const 1)) (drop (memory.grow (i32.const 1)))
      (loop (if (i32.const 1) (then (memory.fill (i32.const 0) (i32.const 1) (i32.const 1))) (else (unreachable)))))
    (i32.load (i32.const 0))))`,
  'a memory of no page': `(module (memory 0) (func (export "run") (result i32)
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 0))
    (i32.add (memory.grow (i32.const 1)) (memory.size))))`,
};

/** Choices of a generated module, and arguments of its function. */
const CALLS = [fc.uint8Array({ minLength: 20, maxLength: 600, size: 'max' }), fc.nat(200_000), fc.nat()] as const;

/** Calls a generated module with and without the sandbox, in both isolations. @returns the fuel of each call */
function assertSame(bytes: Uint8Array, p: number, q: number): number[] {
  const original = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
  const run = original['run'] as (p: number, q: number) => number;
  const expected = run(p, q);
  const steps = (original['steps'] as WebAssembly.Global).value as number;
  const memory = Buffer.from((original['memory'] as WebAssembly.Memory).buffer);
  return ISOLATIONS.map((isolation) => {
    const instance = instanceOf(bytes, isolation);
    const before = Buffer.from(instance.u8);
    assert.equal(instance.func('run')(p, q), expected);
    const { fuelUsed } = instance;
    // Every step is counted by four added instructions.
    assert.ok(fuelUsed >= 4 * steps, `${fuelUsed} for ${steps} steps`);
    assert.equal(instance.memoryBytes, memory.length);
    assert.ok(memory.equals(instance.view(0, memory.length)));
    if (isolation === 'restore') {
      assert.ok(instance.restore());
      assert.ok(before.equals(instance.u8), 'memory is put back');
      assert.equal(instance.func('run')(p, q), expected);
    }
    return fuelUsed;
  });
}

describe('a rewritten module', () => {
  for (const [title, text] of Object.entries(CASES)) {
    it(`computes the same: ${title}`, () => {
      const bytes = wat(text);
      const original = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports['run'] as () => unknown;
      const expected = original();
      for (const isolation of ISOLATIONS) {
        const instance = instanceOf(bytes, isolation);
        assert.equal(instance.func('run')(), expected, isolation);
        assert.ok(instance.fuelUsed > 0);
        if (instance.restore()) {
          assert.equal(instance.func('run')(), expected, 'put back');
        }
      }
    });
  }

  it('computes the same and is restored exactly, for any code', () => {
    fc.assert(
      fc.property(...CALLS, (choices, p, q) => {
        assertSame(wat(generatedModule(choices)), p, q);
      }),
      { numRuns: 25 },
    );
  });

  it('does so for the same fuel when its functions are larger than usual', () => {
    fc.assert(
      fc.property(...CALLS, (choices, p, q) => {
        const module = wat(generatedModule(choices));
        assert.deepEqual(assertSame(withLargeFunctions(module), p, q), assertSame(module, p, q));
      }),
      { numRuns: 5, endOnFailure: true },
    );
  });

  it('charges every iteration of a loop and every call', () => {
    const text = `(module (memory 1)
      (func $leaf (export "leaf"))
      (func (export "rounds") (param i32)
        (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
      (func (export "calls") (param i32)
        (loop $l (call $leaf) (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))`;
    const sandbox = sandboxOf(text);
    const fuelOf = (name: string, times: number): number => {
      sandbox.call(FUEL, (instance) => instance.func(name)(times));
      return sandbox.fuelUsed;
    };
    // Per iteration: loop head, local.get, i32.const, i32.sub, local.tee, br_if; and the call with the entry of the
    // callee.
    assert.equal(fuelOf('rounds', 1001) - fuelOf('rounds', 1), 6 * 1000);
    assert.equal(fuelOf('calls', 1001) - fuelOf('calls', 1), 8 * 1000);
  });

  const endless: Record<string, string> = {
    'a tail call through a reference': `(func $run (export "run") (param (ref null $t)) (return_call_ref $u (local.get 0) (ref.func $run)))`,
    'tail calls through a reference in a global': `(global $g (mut (ref null $u)) (ref.null $u))
      (func $run (export "run") (type $u) (global.set $g (ref.func $run)) (return_call_ref $u (local.get 0) (global.get $g)))`,
    'a branch on a reference': '(func (export "run") (type $u) (loop $l (drop (br_on_null $l (ref.null $t)))))',
    'a branch with a reference': `(func $f (type $t)) (func (export "run") (type $u)
      (ref.func $f) (loop $l (param (ref $t)) (br_on_non_null $l)))`,
    'calls through a reference': `(func $f (type $t)) (func (export "run") (type $u) (loop $l (call_ref $t (ref.func $f)) (br $l)))`,
    'a branch of many values': `(type $many (func (param ${'i32 '.repeat(100)}))) (func (export "run") (type $u)
      ${'(i32.const 1)'.repeat(100)} (loop $l (type $many) (br $l)))`,
  };
  for (const [title, text] of Object.entries(endless)) {
    it(`ends when it has no fuel: ${title}`, () => {
      const bytes = wat(`(module (memory 1) (type $t (func)) (type $u (func (param (ref null $t)))) ${text})`);
      for (const isolation of ISOLATIONS) {
        const sandbox = sandboxOf(bytes, isolation);
        assert.throws(() => sandbox.call(100_000, (instance) => instance.func('run')(null as never)), {
          code: 'out-of-fuel',
        });
      }
    });
  }

  it('charges for the values that calls, branches and blocks pass', () => {
    const fuelOf = (code: readonly number[]): number => {
      const sandbox = sandboxOf(passingModule(code));
      sandbox.call(FUEL, (instance) => instance.func('run')());
      return sandbox.fuelUsed;
    };
    const none = fuelOf([]);
    // In hundreds, for 800 parameters and as many results: beside that, each needs few instructions.
    const charged = (...code: number[]): number => Math.floor((fuelOf(code) - none) / 100);
    const [block, loop, zero] = [0x02, 0x03, 0x41];
    const calleesOwn = 8;
    assert.equal(charged(0x10, 1), 2 + calleesOwn);
    assert.equal(charged(0xd2, 1, 0x14, 1), 2 + calleesOwn);
    assert.equal(charged(block, 1, 0x0b), 2);
    assert.equal(charged(block, 1, 0x0c, 0, 0x0b), 2 + 1);
    assert.equal(charged(block, 1, zero, 0, 0x0d, 0, 0x0b), 2 + 1);
    assert.equal(charged(block, 1, zero, 0, 0x0e, 1, 0, 0, 0x0b), 2 + 1);
    assert.equal(charged(loop, 1, zero, 0, 0x0d, 0, 0x0b), 2 + 1);
    assert.equal(charged(block, 1, 0xd2, 1, 0xd5, 0, 0x1a, 0x0b), 2 + 1);
  });

  it('charges a large branch when it is taken, and the code after it in any case', () => {
    // 400 instructions
    const work = '(local.set 1 (i32.mul (local.get 1) (i32.const 3)))'.repeat(100);
    const sandbox = sandboxOf(`(module (memory 1)
      (func (export "if") (param i32) (local i32) (if (local.get 0) (then ${work})) ${work})
      (func (export "else") (param i32) (local i32) (if (local.get 0) (then ${work}) (else ${work}${work})) ${work})
      (func (export "exit") (param i32) (local i32) (if (local.get 0) (then (return))) ${work})
      (func (export "case") (param i32) (local i32)
        (block $end (block $b (block $a (br_table $a $b (local.get 0))) ${work} (br $end)) ${work}${work}) ${work})
      (func (export "block") (param i32) (local i32) (block $b (br_if $b (local.get 0)) (if (i32.const 1) (then ${work}))) ${work}))`);
    const rounded = (name: string): number[] =>
      [0, 1].map((argument) => {
        sandbox.call(FUEL, (instance) => instance.func(name)(argument));
        return Math.floor(sandbox.fuelUsed / 400);
      });
    assert.deepEqual(rounded('if'), [1, 2]);
    assert.deepEqual(rounded('else'), [3, 2]);
    assert.deepEqual(rounded('exit'), [1, 0]);
    assert.deepEqual(rounded('case'), [2, 3]);
    assert.deepEqual(rounded('block'), [2, 1]);
    // A small branch is charged with the code around it, not with its large sibling.
    const small = '(local.set 1 (i32.add (local.get 1) (i32.const 1)))'.repeat(5);
    const sibling = sandboxOf(`(module (memory 1) (func (export "run") (param i32) (local i32)
      (loop $l (if (i32.const 0) (then ${work}) (else ${small})) (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))`);
    sibling.call(FUEL, (instance) => instance.func('run')(1000));
    assert.ok(sibling.fuelUsed >= 1000 * (20 + 8), String(sibling.fuelUsed));
  });

  it('keeps no custom sections', () => {
    const bytes = example('required-labels');
    assert.ok(WebAssembly.Module.customSections(new WebAssembly.Module(bytes), 'io.kubewarden.metadata').length > 0);
    const { module } = compileModule(bytes, { memoryLimitBytes: MEMORY_BYTES, isolation: 'restore' });
    assert.equal(WebAssembly.Module.customSections(module, 'io.kubewarden.metadata').length, 0);
  });

  it('limits the entries of all tables together', () => {
    const text = `(module (memory 1) (table $t 0 externref) (func (export "run") (result i32)
      (table.grow $t (ref.null extern) (i32.const 3000000))))`;
    assert.equal(instanceOf(wat(text), 'fresh').func('run')(), -1);
  });
});

/**
 * Bodies of `run`, with a and b far apart (and c = 0, d = 1). In each, an earlier mark seems to cover a store, but does not.
 * The stored value is never zero.
 */
const MARKS: Record<string, string> = {
  'the local was set since':
    '(i32.store (local.get $a) (local.get $b)) (local.set $a (local.get $b)) (i32.store (local.get $a) (i32.const 1))',
  'the local is set by the value stored': `(i32.store (local.get $a) (i32.const 1))
    (i32.store (local.get $b) (local.tee $b (i32.const 900000)))`,
  'the value is read through another local':
    '(i32.store (local.get $b) (i32.const 1)) (i32.store (local.get $a) (i32.load (local.get $b)))',
  'the value is a call':
    '(i32.store (local.get $b) (i32.const 1)) (i32.store (local.get $a) (call $sum (local.get $b) (local.get $d)))',
  'the value is a sum': '(i32.store (local.get $a) (i32.add (local.get $b) (i32.mul (local.get $b) (local.get $d))))',
  'the value is a select': '(i32.store (local.get $a) (select (local.get $b) (local.get $d) (local.get $d)))',
  'the offset is far': '(i32.store (local.get $a) (i32.const 1)) (i32.store offset=9000 (local.get $a) (i32.const 1))',
  'the offset is near, but the mark far':
    '(i32.store offset=9000 (local.get $a) (i32.const 1)) (i32.store (local.get $a) (i32.const 1))',
  'offsets alternate': `(i32.store (local.get $a) (i32.const 1)) (i32.store offset=20000 (local.get $a) (i32.const 1))
    (i32.store offset=4 (local.get $a) (i32.const 1)) (i32.store offset=40000 (local.get $a) (i32.const 1))`,
  'the mark is in an arm not taken':
    '(if (local.get $c) (then (i32.store (local.get $a) (i32.const 1)))) (i32.store (local.get $a) (i32.const 2))',
  'the mark is in the other arm': `(if (local.get $c) (then (i32.store (local.get $a) (i32.const 1)))
    (else (i32.store (local.get $a) (i32.const 2))))`,
  'the mark was jumped over':
    '(block $out (br_if $out (local.get $d)) (i32.store (local.get $a) (i32.const 1))) (i32.store (local.get $a) (i32.const 2))',
  'the mark was jumped over by a table': `(block $x (block $y (br_table $x $y (local.get $c))) (i32.store (local.get $a) (i32.const 1)))
    (i32.store (local.get $a) (i32.const 2))`,
  'the loop changes the local behind the store': `(i32.store (local.get $a) (i32.const 1))
    (loop $l (i32.store (local.get $a) (i32.const 2)) (local.set $a (local.get $b)) (br_if $l (i32.eqz (local.tee $d (i32.sub (local.get $d) (i32.const 1))))))`,
  'an inner loop changes the local of the outer': `(loop $l (i32.store (local.get $a) (i32.const 2))
      (loop $m (local.set $a (i32.add (local.get $a) (i32.const 100000))) (br_if $m (i32.eqz (local.tee $e (i32.add (local.get $e) (i32.const 1))))))
      (br_if $l (i32.lt_u (local.tee $c (i32.add (local.get $c) (i32.const 1))) (i32.const 4))))`,
  'the local changes between loop and inner loop': `(loop $l (local.set $a (i32.add (local.get $a) (i32.const 100000)))
      (loop $m (i32.store (local.get $a) (i32.const 2)))
      (br_if $l (i32.lt_u (local.tee $c (i32.add (local.get $c) (i32.const 1))) (i32.const 4))))`,
  'a loop is left before its mark': `(block $out (loop $l (br_if $out (local.get $d)) (local.set $a (local.get $b)) (i32.store (local.get $a) (i32.const 1)) (br $l)))
    (i32.store (local.get $a) (i32.const 2))`,
  'a mark before a loop, the local restored in it': `(i32.store (local.get $a) (i32.const 1)) (local.set $e (local.get $a))
    (loop $l (local.set $a (local.get $b)) (i32.store (local.get $a) (i32.const 1)) (local.set $a (local.get $e)) (br_if $l (local.get $c)))
    (i32.store offset=4 (local.get $a) (i32.const 3))`,
  'the store straddles granules':
    '(i64.store (i32.const 8189) (i64.const -1)) (v128.store (i32.const 500000) (v128.const i32x4 1 1 1 1)) (v128.store offset=2047 (local.get $a) (v128.const i32x4 1 1 1 1))',
  'the address is computed':
    '(i32.store (i32.add (local.get $a) (i32.const 50000)) (i32.const 1)) (f64.store (i32.mul (local.get $d) (local.get $b)) (f64.const 1))',
};

describe('write tracking', () => {
  const far = [300_000, 700_000] as const;
  for (const [title, body] of Object.entries(MARKS)) {
    it(`sees every store when ${title}`, () => {
      const text = `(module (memory 20) (func $sum (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
        (func (export "run") (param $a i32) (param $b i32) (param $c i32) (param $d i32) (local $e i32) ${body}))`;
      const instance = instanceOf(wat(text), 'restore');
      const before = Buffer.from(instance.u8);
      for (const [a, b] of [far, far.toReversed()] as [number, number][]) {
        instance.func('run')(a, b, 0, 1);
        assert.ok(!before.equals(instance.u8), 'test is wrong: nothing was written');
        assert.ok(instance.restore());
        assert.ok(before.equals(instance.u8));
      }
    });
  }

  it('hoists marks out of loops without trapping on invalid addresses', () => {
    // The store never runs; its base address is far beyond the end of memory.
    const text = `(module (memory 1) (func (export "run") (param $a i32) (result i32)
      (loop $l (if (i32.const 0) (then (i32.store (local.get $a) (i32.const 1))))) (i32.const 5)))`;
    const instance = instanceOf(wat(text), 'restore');
    for (const address of [-1, 65_536, 0x7fff_ffff, 0]) {
      assert.equal(instance.func('run')(address), 5);
      assert.ok(instance.restore());
    }
  });
});

/** Reasons why the sandbox calls a module invalid that V8 accepts. */
const OWN_REASONS = /data segment lies outside|names with that prefix/;

describe('compileModule', () => {
  const compile = (bytes: Uint8Array): unknown =>
    compileModule(bytes, { memoryLimitBytes: MEMORY_BYTES, isolation: 'restore' });

  it('reads every opcode of the supported features', () => {
    const bodies = everyOpcode();
    for (const body of bodies) {
      const bytes = moduleWithBody(body);
      assert.ok(WebAssembly.validate(bytes), `test is wrong: ${body.join(' ')}`);
      compile(bytes);
    }
    assert.ok(bodies.length > 400, String(bodies.length));
  });

  const refused: Record<string, [text: string, code: string, message: RegExp]> = {
    atomics: [
      '(module (memory 1 1 shared) (func (drop (i32.atomic.load (i32.const 0)))))',
      'feature-unsupported',
      /threads/,
    ],
    'atomics without shared memory': [
      '(module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))',
      'feature-unsupported',
      /threads/,
    ],
    memory64: ['(module (memory i64 1))', 'feature-unsupported', /64-bit memory/],
    'several memories': ['(module (memory 1) (memory 1))', 'feature-unsupported', /several memories/],
    exceptions: ['(module (tag $e) (func (throw $e)))', 'feature-unsupported', /exception/],
    'garbage collection': [
      '(module (type $s (struct (field i32))) (func (export "f") (drop (struct.new_default $s))))',
      'feature-unsupported',
      /garbage collection/,
    ],
    'an imported table': ['(module (import "env" "t" (table 1 funcref)))', 'import-missing', /table env\.t/],
    'an imported global': ['(module (import "env" "g" (global i32)))', 'import-missing', /global env\.g/],
    'too many tables': [
      `(module ${'(table 1 funcref)'.repeat(MAX_TABLES + 1)})`,
      'module-too-costly',
      /too many tables/,
    ],
    'a huge table': ['(module (table 5000000 funcref))', 'module-too-costly', /too many table entries/],
    'more memory than allowed': ['(module (memory 65))', 'memory-limit', /needs 65 pages.*at most 64/],
    'data behind the end of memory': [
      '(module (memory 1) (data (i32.const 65535) "ab"))',
      'module-invalid',
      /outside of the module's memory/,
    ],
    'names of the sandbox': [
      `(module (func (export "\\01${PRIVATE_PREFIX.slice(1)}x")))`,
      'module-invalid',
      /sandbox's own/,
    ],
  };
  for (const [title, [text, code, message]] of Object.entries(refused)) {
    it(`refuses ${title}`, () => {
      const bytes = wat(text);
      assert.ok(WebAssembly.validate(bytes), 'the original is valid');
      assert.throws(() => compile(bytes), { name: 'WasmError', code, message });
    });
  }

  it('rejects files that are not WebAssembly and names their first bytes', () => {
    assert.throws(() => compile(new Uint8Array(0)), { code: 'module-invalid', message: /got an empty file/ });
    assert.throws(() => compile(Buffer.from('<!doctype html>')), { code: 'module-invalid', message: /3c 21 64 6f/ });
    assert.throws(() => compile(fixture('accept').subarray(0, 100)), { code: 'module-invalid' });
    const tooLarge = new Uint8Array(MAX_MODULE_BYTES + 1);
    assert.throws(() => compile(tooLarge), { code: 'module-invalid', message: /too large/ });
  });

  it('accepts what V8 accepts, but for what it names, and throws nothing but WasmError', () => {
    const choices = fc.sample(fc.uint8Array({ minLength: 20, maxLength: 300, size: 'max' }), { seed: 1, numRuns: 5 });
    const generated = choices.map((bytes) => wat(generatedModule(bytes)));
    const seeds = [fixture('accept'), example('required-labels'), ...Object.values(CASES).map(wat), ...generated];
    const change = fc.record({ at: fc.nat(), value: fc.integer({ min: 0, max: 255 }) });
    fc.assert(
      fc.property(
        fc.constantFrom(...seeds),
        fc.array(change, { minLength: 1, maxLength: 4 }),
        fc.option(fc.nat(), { freq: 3 }),
        (seed, changes, cut) => {
          const bytes = seed.slice(0, cut === null ? seed.length : cut % seed.length);
          for (const { at, value } of changes) {
            bytes[at % Math.max(bytes.length, 1)] = value;
          }
          try {
            compile(bytes);
          } catch (error) {
            assert.ok(error instanceof WasmError, String(error));
            const isInvalid = error.code === 'module-invalid' && !OWN_REASONS.test(error.message);
            assert.ok(!isInvalid || !WebAssembly.validate(bytes), error.message);
            return;
          }
          assert.ok(WebAssembly.validate(bytes));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('counts the operands of every plain opcode as V8 does', () => {
    const constants = [
      [0x41, 0],
      [0x42, 0],
      [0x43, 0, 0, 0, 0],
      [0x44, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    const operands = (count: number): number[][] =>
      count === 0 ? [[]] : operands(count - 1).flatMap((before) => constants.map((one) => [...before, ...one]));
    for (let opcode = 0x28; opcode <= 0xc4; opcode++) {
      const { [opcode]: kind = 0 } = PLAIN.immediate;
      const isLoad = kind === Immediate.memory;
      if (!isLoad && (kind !== Immediate.none || opcode < 0x45)) {
        continue;
      }
      const immediates = isLoad ? [0, 0] : [];
      const accepts = (pops: number): boolean =>
        operands(pops).some((values) =>
          WebAssembly.validate(moduleWithCode([0, ...values, opcode, ...immediates, 0x1a, 0x0b])),
        );
      const [pops, pushes] = [PLAIN.pops[opcode] ?? 0, PLAIN.pushes[opcode] ?? 0];
      assert.ok(pushes === 1 && accepts(pops), `opcode ${opcode.toString(16)} takes ${pops} and gives ${pushes}`);
    }
  });

  it('compiles a module that can be sent to another thread', () => {
    const compiled = structuredClone(
      compileModule(fixture('accept'), { memoryLimitBytes: PAGE_BYTES, isolation: 'restore' }),
    );
    assert.equal(compiled.shape.memoryPages, 1);
    assert.ok(compiled.module instanceof WebAssembly.Module);
  });
});

/** One instruction each, with immediates that are valid in the module below; operands come from unreachable code. */
function everyOpcode(): number[][] {
  const range = (from: number, to: number): number[] =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index);
  const leb = (value: number): number[] => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)]);
  const memory = [0x00, 0x88, 0x01];
  const drop = 0x1a;
  const plain = [...range(0x45, 0xc4)].map((opcode) => [opcode, drop]);
  const loads = range(0x28, 0x35).map((opcode) => [opcode, ...memory, drop]);
  const stores = range(0x36, 0x3e).map((opcode) => [opcode, ...memory]);
  const others = [
    [0x00],
    [0x01],
    [0x02, 0x40, 0x0b],
    [0x03, 0x40, 0x0b],
    [0x04, 0x40, 0x05, 0x0b],
    [0x02, 0x00, 0x0b],
    [0x0c, 0],
    [0x0d, 0],
    [0x0e, 1, 0, 0],
    [0x0f],
    [0x10, 0],
    [0x11, 0, 0],
    [0x12, 0],
    [0x13, 0, 0],
    [0x14, 0],
    [0x15, 0],
    [drop],
    [0x1b, drop],
    [0x1c, 1, 0x7f, drop],
    [0x20, 0, drop],
    [0x21, 0],
    [0x22, 0, drop],
    [0x23, 0, drop],
    [0x24, 0],
    [0x25, 0, drop],
    [0x26, 0],
    [0x3f, 0, drop],
    [0x40, 0, drop],
    [0x41, 0xff, 0xff, 0xff, 0xff, 0x07, drop],
    [0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, drop],
    [0x43, 1, 2, 3, 4, drop],
    [0x44, 1, 2, 3, 4, 5, 6, 7, 8, drop],
    [0xd0, 0x70, drop],
    [0xd0, 0x6f, drop],
    [0xd1, drop],
    [0xd0, 0, drop],
    [0xd2, 0, drop],
    [0xd4, drop],
    [0xd5, 0, drop],
    [0x02, 0x64, 0x70, 0x00, 0xd6, 0, 0x00, 0x0b, drop],
  ];
  const misc = [
    ...range(0, 7).map((opcode) => [0xfc, opcode, drop]),
    [0xfc, 8, 0, 0],
    [0xfc, 9, 0],
    [0xfc, 10, 0, 0],
    [0xfc, 11, 0],
    [0xfc, 12, 0, 0],
    [0xfc, 13, 0],
    [0xfc, 14, 0, 0],
    [0xfc, 15, 0, drop],
    [0xfc, 16, 0, drop],
    [0xfc, 17, 0],
  ];
  const unassigned = new Set([
    0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2,
    0xee,
  ]);
  const simd = range(0, 0x113)
    .filter((opcode) => !unassigned.has(opcode))
    .map((opcode) => {
      const immediates =
        opcode <= 11 || opcode === 92 || opcode === 93
          ? memory
          : opcode === 12 || opcode === 13
            ? Array.from({ length: 16 }, () => 0)
            : opcode >= 21 && opcode <= 34
              ? [0]
              : opcode >= 84 && opcode <= 91
                ? [...memory, 0]
                : [];
      const isStore = opcode === 11 || (opcode >= 88 && opcode <= 91);
      return [0xfd, ...leb(opcode), ...immediates, ...(isStore ? [] : [drop])];
    });
  return [...plain, ...loads, ...stores, ...others, ...misc, ...simd];
}

/** A module whose function `run` has this code between 800 values that it pushes, and takes. Function and type 1 return theirs. */
function passingModule(code: readonly number[]): Uint8Array {
  const values = 800;
  const repeat = (...bytes: number[]): number[] => Array.from({ length: values }, () => bytes).flat();
  const out = new BinaryWriter().op(0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
  const section = (id: number, content: BinaryWriter): unknown => out.op(id).sized(content.written);
  const types = new BinaryWriter()
    .op(2, 0x60, 0, 0, 0x60)
    .u32(values)
    .op(...repeat(0x7f));
  section(1, types.u32(values).op(...repeat(0x7f)));
  section(3, new BinaryWriter().op(2, 0, 1));
  section(5, new BinaryWriter().op(1, 0, 1));
  section(7, new BinaryWriter().op(2).name('run').op(0, 0).name('same').op(0, 1));
  const same = new BinaryWriter().op(0);
  for (let local = 0; local < values; local++) {
    same.op(0x20).u32(local);
  }
  const run = new BinaryWriter().op(0, ...repeat(0x41, 1), ...code, ...repeat(0x1a), 0x0b);
  section(10, new BinaryWriter().op(2).sized(run.written).sized(same.op(0x0b).written));
  return out.written.slice();
}

/** `block unreachable <body> end <body>` in a module with one of everything: as unreachable and as reachable code. */
function moduleWithBody(body: readonly number[]): Uint8Array {
  return moduleWithCode([0x01, 0x01, 0x7f, 0x02, 0x40, 0x00, ...body, 0x00, 0x0b, 0x00, ...body, 0x00, 0x0b]);
}

function moduleWithCode(code: readonly number[]): Uint8Array {
  const section = (id: number, content: readonly number[]): number[] => [id, ...size(content.length), ...content];
  const size = (value: number): number[] => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, value >>> 7]);
  return Uint8Array.from([
    0x00,
    0x61,
    0x73,
    0x6d,
    0x01,
    0x00,
    0x00,
    0x00,
    ...section(1, [1, 0x60, 0, 0]),
    ...section(3, [1, 0]),
    ...section(4, [1, 0x70, 0, 1]),
    ...section(5, [1, 0, 1]),
    ...section(6, [1, 0x7f, 1, 0x41, 0, 0x0b]),
    ...section(9, [1, 1, 0, 1, 0]),
    ...section(12, [1]),
    ...section(10, [1, ...size(code.length), ...code]),
    ...section(11, [1, 1, 1, 0x61]),
  ]);
}
