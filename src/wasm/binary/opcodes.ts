import type { BinaryReader } from './binary-reader.ts';
import { Feature, Proposal } from './features.ts';

/** Value types of the supported features. */
export const ValueType = {
  i32: 0x7f,
  i64: 0x7e,
  f32: 0x7d,
  f64: 0x7c,
  v128: 0x7b,
  funcref: 0x70,
  externref: 0x6f,
  /** Followed by a heap type: references that are never null, and those that may be. */
  ref: 0x64,
  refNull: 0x63,
} as const;

/** Opcodes that the rewriter emits or treats specially. */
export const Op = {
  unreachable: 0x00,
  nop: 0x01,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  end: 0x0b,
  br: 0x0c,
  brIf: 0x0d,
  brTable: 0x0e,
  return: 0x0f,
  call: 0x10,
  callIndirect: 0x11,
  returnCall: 0x12,
  returnCallIndirect: 0x13,
  callRef: 0x14,
  returnCallRef: 0x15,
  drop: 0x1a,
  localGet: 0x20,
  localSet: 0x21,
  localTee: 0x22,
  globalGet: 0x23,
  globalSet: 0x24,
  tableSet: 0x26,
  i32Load8U: 0x2d,
  i32Store: 0x36,
  i64Store: 0x37,
  f32Store: 0x38,
  f64Store: 0x39,
  i32Store8: 0x3a,
  i32Store16: 0x3b,
  i64Store8: 0x3c,
  i64Store16: 0x3d,
  i64Store32: 0x3e,
  memorySize: 0x3f,
  memoryGrow: 0x40,
  i32Const: 0x41,
  i64Const: 0x42,
  f32Const: 0x43,
  f64Const: 0x44,
  i32Eqz: 0x45,
  i32Eq: 0x46,
  i32Ne: 0x47,
  i32LtU: 0x49,
  i32GtU: 0x4b,
  i32GeU: 0x4f,
  i64LtS: 0x53,
  i32Add: 0x6a,
  i32Sub: 0x6b,
  i32Mul: 0x6c,
  i32And: 0x71,
  i32Shl: 0x74,
  i32ShrU: 0x76,
  i64Add: 0x7c,
  i64Sub: 0x7d,
  i64Mul: 0x7e,
  i64ExtendI32U: 0xad,
  refNull: 0xd0,
  refFunc: 0xd2,
  refAsNonNull: 0xd4,
  brOnNull: 0xd5,
  brOnNonNull: 0xd6,
  miscPrefix: 0xfc,
  simdPrefix: 0xfd,
  atomicPrefix: 0xfe,
  gcPrefix: 0xfb,
} as const;

/** Sub-opcodes after `miscPrefix`. */
export const Misc = {
  memoryInit: 8,
  dataDrop: 9,
  memoryCopy: 10,
  memoryFill: 11,
  tableInit: 12,
  elemDrop: 13,
  tableCopy: 14,
  tableGrow: 15,
  tableSize: 16,
  tableFill: 17,
} as const;

/** Sub-opcodes after `simdPrefix`. */
export const Simd = {
  load: 0,
  lastPlainLoad: 10,
  store: 11,
  const: 12,
  shuffle: 13,
  firstLane: 21,
  lastLane: 34,
  or: 80,
  anyTrue: 83,
  firstLoadLane: 84,
  lastLoadLane: 87,
  firstStoreLane: 88,
  lastStoreLane: 91,
  loadZero32: 92,
  loadZero64: 93,
  last: 0x113,
} as const;

/**
 * Immediate operands of a one-byte opcode that the rewriter does not treat specially. `unknown` (zero) marks all other
 * opcodes.
 */
export const Immediate = { unknown: 0, none: 1, index: 2, memory: 3, bytes4: 4, bytes8: 5, heapType: 6 } as const;

/** Opcodes after `gcPrefix` from this one are those of the proposal of strings. */
const FIRST_STRING_OPCODE = 0x80;

interface OpcodeTable {
  readonly immediate: Uint8Array;
  readonly pops: Uint8Array;
  readonly pushes: Uint8Array;
}

/**
 * Opcodes with fixed operands and no control flow. Source:
 * https://webassembly.github.io/spec/core/binary/instructions.html
 */
export const PLAIN: OpcodeTable = buildTable();

function buildTable(): OpcodeTable {
  const immediate = new Uint8Array(256);
  const pops = new Uint8Array(256);
  const pushes = new Uint8Array(256);
  const define = (first: number, last: number, kind: number, pop: number, push: number): void => {
    immediate.fill(kind, first, last + 1);
    pops.fill(pop, first, last + 1);
    pushes.fill(push, first, last + 1);
  };
  define(0x01, 0x01, Immediate.none, 0, 0); // nop
  define(0x1a, 0x1a, Immediate.none, 1, 0); // drop
  define(0x1b, 0x1b, Immediate.none, 3, 1); // select
  define(0x23, 0x23, Immediate.index, 0, 1); // global.get
  define(0x24, 0x24, Immediate.index, 1, 0); // global.set
  define(0x25, 0x25, Immediate.index, 1, 1); // table.get
  define(0x28, 0x35, Immediate.memory, 1, 1); // loads
  define(0x42, 0x42, Immediate.index, 0, 1); // i64.const
  define(0x43, 0x43, Immediate.bytes4, 0, 1); // f32.const
  define(0x44, 0x44, Immediate.bytes8, 0, 1); // f64.const
  define(0x45, 0x45, Immediate.none, 1, 1); // i32.eqz
  define(0x46, 0x4f, Immediate.none, 2, 1); // i32 comparisons
  define(0x50, 0x50, Immediate.none, 1, 1); // i64.eqz
  define(0x51, 0x66, Immediate.none, 2, 1); // i64, f32, f64 comparisons
  define(0x67, 0x69, Immediate.none, 1, 1); // i32.clz ctz popcnt
  define(0x6a, 0x78, Immediate.none, 2, 1); // i32 arithmetic
  define(0x79, 0x7b, Immediate.none, 1, 1); // i64.clz ctz popcnt
  define(0x7c, 0x8a, Immediate.none, 2, 1); // i64 arithmetic
  define(0x8b, 0x91, Immediate.none, 1, 1); // f32 unary
  define(0x92, 0x98, Immediate.none, 2, 1); // f32 binary
  define(0x99, 0x9f, Immediate.none, 1, 1); // f64 unary
  define(0xa0, 0xa6, Immediate.none, 2, 1); // f64 binary
  define(0xa7, 0xc4, Immediate.none, 1, 1); // conversions, sign extension
  define(0xd0, 0xd0, Immediate.heapType, 0, 1); // ref.null
  define(0xd1, 0xd1, Immediate.none, 1, 1); // ref.is_null
  define(0xd2, 0xd2, Immediate.index, 0, 1); // ref.func
  define(0xd4, 0xd4, Immediate.none, 1, 1); // ref.as_non_null
  return { immediate, pops, pushes };
}

/** The feature that an unsupported opcode belongs to, for the error message. `reader` is behind it. */
export function featureOfOpcode(opcode: number, reader: BinaryReader): string {
  if ((opcode >= 0x06 && opcode <= 0x0a) || opcode === 0x18 || opcode === 0x19 || opcode === 0x1f) {
    return Feature.exceptions;
  }
  if (opcode === Op.gcPrefix && reader.u32() >= FIRST_STRING_OPCODE) {
    return Proposal.strings;
  }
  if (opcode === Op.gcPrefix || opcode === 0xd3) {
    return Feature.garbageCollection;
  }
  if (opcode >= 0xe0 && opcode <= 0xe6) {
    return Proposal.stackSwitching;
  }
  if (opcode === Op.atomicPrefix) {
    return Feature.threads;
  }
  return `opcode 0x${opcode.toString(16)}`;
}

/** As {@link featureOfOpcode}, for an opcode after `miscPrefix`. */
export function featureOfMisc(opcode: number): string {
  if (opcode === 0x30 || opcode === 0x31) {
    return Proposal.halfPrecision;
  }
  return opcode >= 19 && opcode <= 22 ? Proposal.wideArithmetic : `opcode 0xfc ${opcode}`;
}

/** As {@link featureOfOpcode}, for an opcode after `simdPrefix`. */
export function featureOfSimd(opcode: number): string {
  return opcode >= 0x120 && opcode <= 0x15f ? Proposal.halfPrecision : `SIMD opcode ${opcode}`;
}
