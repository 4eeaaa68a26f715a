import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import binaryen from 'binaryen';
import { compileModule } from '../instrumentation/compile.ts';
import { Feature, Proposal } from './features.ts';
import { wat } from '../testing/wat.ts';

const MEMORY_BYTES = 4 * 1024 * 1024;

/** A module of the sections before the code. */
function declaring(...sections: readonly (readonly number[])[]): Uint8Array {
  const content = sections.flatMap(([id = 0, ...rest]) => [id, rest.length, ...rest]);
  return Uint8Array.from([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...content]);
}

/** A module with two types, and a function of type 0 with this code. */
function moduleOf(type: readonly number[], code: readonly number[]): Uint8Array {
  return declaring([1, 2, 0x60, 0, 0, ...type], [3, 1, 0], [10, 1, code.length + 2, 0, ...code, 0x0b]);
}
const EMPTY_TYPE = [0x60, 0, 0];
const DROP = 0x1a;

interface Case {
  /** Text, or bytes where Binaryen's text has no such feature or V8 does not accept it. */
  readonly module: string | Uint8Array;
  /** What the message names; undefined: the sandbox accepts the feature. */
  readonly refused?: string;
}

/** What `wasm-opt --all-features` may write, by Binaryen's name of the feature. */
const FEATURES: Record<string, readonly Case[]> = {
  Atomics: [
    { module: '(module (memory 1 1 shared))', refused: Feature.threads },
    { module: '(module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))', refused: Feature.threads },
    { module: '(module (func (atomic.fence)))', refused: Feature.threads },
  ],
  BulkMemory: [
    { module: '(module (memory 1) (data "a") (func (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 1))))' },
  ],
  BulkMemoryOpt: [{ module: '(module (memory 1) (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 1))))' }],
  CallIndirectOverlong: [{ module: moduleOf(EMPTY_TYPE, [0x00, 0x41, 0x80, 0x00, DROP]) }],
  CompactImports: [
    {
      module: declaring([1, 1, 0x60, 0, 0], [2, 1, 1, 0x61, 0, 0x7f, 1, 1, 0x62, 0, 0]),
      refused: Proposal.compactImports,
    },
  ],
  CustomDescriptors: [
    { module: moduleOf([0x60, 1, 0x64, 0x62, 0x00, 0], []), refused: Proposal.customDescriptors },
    { module: moduleOf([0x4d, 0x01, 0x5f, 0], []), refused: Proposal.customDescriptors },
  ],
  CustomPageSizes: [{ module: '(module (memory 1 2 (pagesize 1)))', refused: Proposal.customPageSizes }],
  ExceptionHandling: [
    { module: '(module (tag $e) (func (throw $e)))', refused: Feature.exceptions },
    {
      module: '(module (func (block $a (try_table (catch_all $a) (nop)))))',
      refused: Feature.exceptions,
    },
    { module: '(module (func (param exnref)))', refused: Feature.exceptions },
  ],
  ExtendedConst: [{ module: '(module (global i32 (i32.add (i32.const 1) (i32.const 2))))' }],
  FP16: [
    { module: moduleOf(EMPTY_TYPE, [0x00, 0xfd, 0xa0, 0x02, DROP]), refused: Proposal.halfPrecision },
    { module: moduleOf(EMPTY_TYPE, [0x00, 0xfc, 0x30, 0, 0, DROP]), refused: Proposal.halfPrecision },
  ],
  GC: [
    // Groups of types and subtypes need no garbage collection while they are those of functions.
    {
      module:
        '(module (rec (type $a (func (param (ref null $b)))) (type $b (func (param (ref null $a))))) (func (type $a)))',
    },
    {
      module: `(module (type $a (sub (func))) (type $b (sub final $a (func))) (func $f (type $b)) (elem declare func $f)
        (func (export "run") (call_ref $a (ref.func $f))))`,
    },
    { module: '(module (type $s (struct)) (func (param (ref $s))))', refused: Feature.garbageCollection },
    { module: '(module (type $s (array i8)) (func (param (ref $s))))', refused: Feature.garbageCollection },
    { module: '(module (func (param anyref)))', refused: Feature.garbageCollection },
    { module: '(module (func (local i31ref)))', refused: Feature.garbageCollection },
    { module: '(module (global (ref null none) (ref.null none)))', refused: Feature.garbageCollection },
    { module: '(module (table 1 eqref))', refused: Feature.garbageCollection },
    { module: '(module (func (drop (ref.i31 (i32.const 1)))))', refused: Feature.garbageCollection },
    {
      module: '(module (type $t (func)) (func (param funcref) (drop (ref.cast (ref $t) (local.get 0)))))',
      refused: Feature.garbageCollection,
    },
  ],
  Memory64: [
    { module: '(module (memory i64 1))', refused: Feature.memory64 },
    { module: '(module (table i64 1 funcref))', refused: Feature.table64 },
  ],
  MultiMemory: [{ module: '(module (memory 1) (memory 1))', refused: Feature.multiMemory }],
  Multivalue: [
    { module: '(module (func (result i32 i64) (i32.const 1) (i64.const 2)))' },
    { module: '(module (func (block (result i32 i32) (i32.const 1) (i32.const 2)) (drop) (drop)))' },
  ],
  MutableGlobals: [{ module: '(module (global (export "g") (mut i32) (i32.const 1)))' }],
  NontrappingFPToInt: [{ module: '(module (func (drop (i32.trunc_sat_f32_s (f32.const 1)))))' }],
  ReferenceTypes: [{ module: '(module (table 1 externref) (func (drop (ref.is_null (ref.null func)))))' }],
  RelaxedAtomics: [
    { module: '(module (memory 1) (func (drop (i64.atomic.load (i32.const 0)))))', refused: Feature.threads },
  ],
  RelaxedSIMD: [
    { module: '(module (func (drop (i8x16.relaxed_swizzle (v128.const i32x4 0 0 0 0) (v128.const i32x4 0 0 0 0)))))' },
  ],
  SharedEverything: [
    { module: moduleOf([0x65, 0x60, 0, 0], []), refused: Proposal.sharedEverything },
    { module: moduleOf([0x60, 1, 0x64, 0x65, 0x70, 0], []), refused: Proposal.sharedEverything },
  ],
  SignExt: [{ module: '(module (func (drop (i32.extend8_s (i32.const 1)))))' }],
  SIMD128: [{ module: '(module (func (drop (i32x4.splat (i32.const 1)))))' }],
  StackSwitching: [
    { module: moduleOf([0x5d, 0x00], []), refused: Proposal.stackSwitching },
    { module: moduleOf(EMPTY_TYPE, [0x00, 0xe0, 0x01, DROP]), refused: Proposal.stackSwitching },
  ],
  Strings: [
    { module: moduleOf([0x60, 1, 0x67, 0], []), refused: Proposal.strings },
    { module: moduleOf(EMPTY_TYPE, [0x00, 0xfb, 0x82, 0x01, 0x00, DROP]), refused: Proposal.strings },
  ],
  TailCall: [{ module: '(module (func $f (return_call $f)))' }],
  TypedFunctionReferences: [
    {
      module: `(module (type $t (func)) (type $u (func (param (ref $t)) (result (ref null $t)))) (func $f)
        (table 2 (ref $t) (ref.func $f)) (table 2 (ref null $t)) (global (ref $t) (ref.func $f))
        (elem (table 0) (i32.const 1) (ref $t) (ref.func $f)) (elem (ref null $t) (ref.null $t) (ref.func $f))
        (func $g (type $u) (local (ref $t)) (block (result (ref $t)) (local.tee 1 (table.get 0 (i32.const 0)))) (call_ref $t)
          (return_call_ref $u (local.get 1) (ref.func $g))))`,
    },
    {
      module: `(module (type $t (func)) (func (param (ref null $t)) (result (ref func))
        (block $null (br_on_null $null (local.get 0)) (call_ref $t))
        (block $set (result (ref $t)) (br_on_non_null $set (local.get 0)) (ref.as_non_null (ref.null $t)))))`,
    },
    { module: '(module (func (param nullfuncref nullexternref (ref extern) (ref null func))))' },
  ],
  WideArithmetic: [{ module: moduleOf(EMPTY_TYPE, [0x00, 0xfc, 0x13, DROP, DROP]), refused: Proposal.wideArithmetic }],
};

describe('A feature that wasm-opt --all-features may use', () => {
  it('is in this list', () => {
    const listed = new Set([...Object.keys(FEATURES), 'MVP', 'All']);
    assert.deepEqual(
      Object.keys(binaryen.Features).filter((name) => !listed.has(name)),
      [],
    );
  });

  for (const [feature, cases] of Object.entries(FEATURES)) {
    for (const [index, { module, refused }] of cases.entries()) {
      it(`is ${refused === undefined ? 'accepted' : `refused as "${refused}"`}: ${feature} ${index + 1}`, () => {
        const bytes = typeof module === 'string' ? wat(module) : module;
        const compile = (): unknown => compileModule(bytes, { memoryLimitBytes: MEMORY_BYTES, isolation: 'restore' });
        if (refused === undefined) {
          compile();
          return;
        }
        const isProposal = Object.values<string>(Proposal).includes(refused);
        assert.equal(WebAssembly.validate(bytes), !isProposal, 'test is wrong');
        assert.throws(compile, (error: Error & { readonly code?: string }) => {
          assert.equal(error.code, 'feature-unsupported', error.message);
          assert.ok(error.message.startsWith(`the module uses ${refused}`), error.message);
          return true;
        });
      });
    }
  }
});
