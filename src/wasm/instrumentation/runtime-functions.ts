import { BinaryWriter } from '../binary/binary-writer.ts';
import { BULK_BYTES_SHIFT, CARD_SHIFT, GROW_PAGE_FUEL, PAGE_BYTES, TABLE_ENTRY_FUEL } from './metering.ts';
import { Misc, Op, Simd, ValueType } from '../binary/opcodes.ts';
import { heapTypeOf } from '../binary/value-types.ts';

/** Indexes that the added functions refer to. */
interface RuntimeEnvironment {
  readonly fuelGlobal: number;
  /** Defined when instances of the module are restored. */
  readonly tracking: TrackingEnvironment | undefined;
}

export interface TrackingEnvironment {
  /**
   * Index of the memory that holds the cards, from TOUCHED_START the flags of granules that were ever written, and from
   * SNAPSHOT_START the snapshot. The guest's memory has index 0.
   */
  readonly cardMemory: number;
  /** Number of cards in use: one per granule of the guest's maximum memory. */
  readonly cardCount: number;
  readonly limitPages: number;
  readonly limitBytes: number;
  readonly pagesGlobal: number;
  /** Each mutable global (including the page count) with the global that keeps its snapshot. */
  readonly savedGlobals: readonly SavedGlobal[];
  /** Index of the global with the snapshot's length in bytes. */
  readonly snapshotBytesGlobal: number;
  /** Index of the global with the number of granules that were ever written. */
  readonly touchedGlobal: number;
}

interface SavedGlobal {
  readonly live: number;
  readonly saved: number;
  /** Whether its type has no null; that of the saved one has, because it needs an initial value. */
  readonly isNeverNull: boolean;
}

const { i32, i64 } = ValueType;
const EMPTY_BLOCK_TYPE = 0x40;
/** Bytes of a granule. */
export const GRANULE_BYTES: number = 2 ** CARD_SHIFT;
/** Cards checked per iteration of the scan: four vectors. */
const SCAN_BYTES = 64;

/**
 * One card for every granule of the 32-bit address space, so that marks cannot trap, and one more to end the last run.
 */
const CARD_PAGES = (2 ** 32 / GRANULE_BYTES + PAGE_BYTES) / PAGE_BYTES;

/** One flag for every card: the granule was written since the instance exists, so its page is resident. */
const TOUCHED_START = CARD_PAGES * PAGE_BYTES;

/** Pages for cards and flags. Untouched, they use no physical memory. */
export const TRACKING_PAGES: number = 2 * CARD_PAGES;

/** The snapshot follows the cards in one memory, because a process can have only some 16,000 memories. */
const SNAPSHOT_START = TRACKING_PAGES * PAGE_BYTES;

/** Result of `restore` when more than the limit was written. */
export const RESTORE_REFUSED = -1;

/**
 * Maximum bytes that `restore` copies; beyond it, the instance is replaced. Copying 8 MiB takes about 1 ms, as long as
 * a new instance with its initialization, and a guest that once needed much memory would keep it resident forever.
 */
export const MAX_RESTORE_BYTES = 8 * 1024 * 1024;

/** A function body: locals and code, without its size. */
type Body = Uint8Array;

/**
 * Charges `length >> BULK_BYTES_SHIFT` fuel and, with tracking, marks the cards of `length` bytes at `start`. (i32
 * start, i32 length)
 */
export function bulkBody(env: RuntimeEnvironment): Body {
  const [start, length] = [0, 1];
  const code = new BinaryWriter().u32(0);
  code.op(Op.localGet, length, Op.i32Const, BULK_BYTES_SHIFT, Op.i32ShrU);
  chargeI32(code, env.fuelGlobal);
  if (env.tracking !== undefined) {
    // fill(cards, start >> S, 1, ((start + length - 1) >> S) - (start >> S) + 1), unless length is 0. A range that
    // wraps around traps here instead of in the operation.
    code.op(Op.localGet, length, Op.if, EMPTY_BLOCK_TYPE);
    code.op(Op.localGet, start, Op.i32Const, CARD_SHIFT, Op.i32ShrU);
    code.op(Op.i32Const, 1);
    code.op(Op.localGet, start, Op.localGet, length, Op.i32Add, Op.i32Const, 1, Op.i32Sub);
    code.op(Op.i32Const, CARD_SHIFT, Op.i32ShrU);
    code.op(Op.localGet, start, Op.i32Const, CARD_SHIFT, Op.i32ShrU, Op.i32Sub, Op.i32Const, 1, Op.i32Add);
    code.op(Op.miscPrefix, Misc.memoryFill).u32(env.tracking.cardMemory);
    code.op(Op.end);
  }
  return code.op(Op.end).written;
}

/** Charges a table operation on `length` entries. (i32 length) */
export function tableBody(env: RuntimeEnvironment): Body {
  const code = new BinaryWriter().u32(0);
  code.op(Op.localGet, 0);
  chargeI32(code, env.fuelGlobal, TABLE_ENTRY_FUEL);
  return code.op(Op.end).written;
}

/** Charges instructions. (i32 fuel) */
export function chargeBody(env: RuntimeEnvironment): Body {
  const code = new BinaryWriter().u32(0);
  code.op(Op.localGet, 0);
  chargeI32(code, env.fuelGlobal);
  return code.op(Op.end).written;
}

/** Marks the card of an address. (i32 address) */
export function markBody({ cardMemory }: TrackingEnvironment): Body {
  const code = new BinaryWriter().u32(0);
  code.op(Op.localGet, 0, Op.i32Const, CARD_SHIFT, Op.i32ShrU, Op.i32Const, 1);
  return code.op(Op.i32Store8, 0x40).u32(cardMemory).op(0, Op.end).written;
}

/** memory.grow: charged when it succeeds. With tracking, only the page count changes. (i32 pages) -> i32 */
export function growBody(env: RuntimeEnvironment): Body {
  const [delta, old] = [0, 1];
  const code = new BinaryWriter().u32(1).op(1, i32);
  const failIf = (condition: () => void): void => {
    condition();
    code.op(Op.if, EMPTY_BLOCK_TYPE, Op.i32Const).s32(-1).op(Op.return, Op.end);
  };
  if (env.tracking === undefined) {
    failIf(() => {
      code.op(Op.localGet, delta, Op.memoryGrow, 0, Op.localTee, old).op(Op.i32Const).s32(-1).op(Op.i32Eq);
    });
  } else {
    const { pagesGlobal, limitPages } = env.tracking;
    // old + delta could wrap around; limit - old cannot, because old <= limit.
    failIf(() => {
      code.op(Op.localGet, delta, Op.i32Const).s32(limitPages);
      code.op(Op.globalGet).u32(pagesGlobal).op(Op.localTee, old, Op.i32Sub, Op.i32GtU);
    });
    code.op(Op.localGet, old, Op.localGet, delta, Op.i32Add, Op.globalSet).u32(pagesGlobal);
  }
  code.op(Op.localGet, delta);
  chargeI32(code, env.fuelGlobal, GROW_PAGE_FUEL);
  return code.op(Op.localGet, old, Op.end).written;
}

/**
 * Saves memory and globals for `restore`, and clears all cards. Copies at most `maxGranules`. Returns the number of granules
 * with a byte other than zero; if that is more, the instance is unusable. (i32 maxGranules) -> i32
 */
export function snapshotBody(tracking: TrackingEnvironment, restoreFunction: number, isUsedFunction: number): Body {
  const { cardMemory, pagesGlobal } = tracking;
  const [maxGranules, granule, bytes, kept, card] = [0, 1, 2, 3, 4];
  const code = new BinaryWriter().u32(1).op(4, i32);
  for (const { live, saved } of tracking.savedGlobals) {
    code.op(Op.globalGet).u32(live).op(Op.globalSet).u32(saved);
  }
  code.op(Op.globalGet).u32(pagesGlobal).op(Op.i32Const, 16, Op.i32Shl);
  code.op(Op.localSet, bytes);
  // Until now, the memory has room only for the cards.
  code.op(Op.globalGet).u32(pagesGlobal).op(Op.memoryGrow).u32(cardMemory);
  code.op(Op.i32Const).s32(-1).op(Op.i32Eq, Op.if, EMPTY_BLOCK_TYPE, Op.unreachable, Op.end);
  code.op(Op.localGet, bytes, Op.globalSet).u32(tracking.snapshotBytesGlobal);
  // Copy only granules with a byte other than zero, so that the copy of untouched memory stays untouched.
  code.op(Op.block, EMPTY_BLOCK_TYPE, Op.loop, EMPTY_BLOCK_TYPE);
  code.op(Op.localGet, granule, Op.localGet, bytes, Op.i32GeU, Op.brIf, 1);
  code.op(Op.localGet, granule, Op.call).u32(isUsedFunction);
  code.op(Op.if, EMPTY_BLOCK_TYPE);
  // Data segments are written without marks.
  code.op(Op.localGet, granule, Op.i32Const, CARD_SHIFT, Op.i32ShrU, Op.localSet, card);
  countTouched(code, tracking, card);
  code.op(
    Op.localGet,
    kept,
    Op.i32Const,
    1,
    Op.i32Add,
    Op.localTee,
    kept,
    Op.localGet,
    maxGranules,
    Op.i32GtU,
    Op.i32Eqz,
  );
  code.op(Op.if, EMPTY_BLOCK_TYPE);
  code.op(Op.localGet, granule, Op.i32Const).s32(SNAPSHOT_START).op(Op.i32Add);
  code.op(Op.localGet, granule, Op.i32Const).s32(GRANULE_BYTES);
  code.op(Op.miscPrefix, Misc.memoryCopy).u32(cardMemory).u32(0);
  code.op(Op.end, Op.end);
  code.op(Op.localGet, granule, Op.i32Const).s32(GRANULE_BYTES).op(Op.i32Add, Op.localSet, granule, Op.br, 0);
  code.op(Op.end, Op.end);
  // Initialization may write beyond the end of the guest's memory, which does not trap in a rewritten module. Clear
  // those bytes, so that every call sees the same memory.
  code.op(Op.i32Const).s32(tracking.limitBytes).op(Op.call).u32(restoreFunction).op(0x1a);
  return code.op(Op.localGet, kept, Op.end).written;
}

/** Whether the granule of guest memory at `start` has a byte other than zero. (i32 start) -> i32 */
export function isUsedBody(): Body {
  const [start, end] = [0, 1];
  const code = new BinaryWriter().u32(1).op(1, i32);
  code.op(Op.localGet, start, Op.i32Const).s32(GRANULE_BYTES).op(Op.i32Add, Op.localSet, end);
  code.op(Op.loop, EMPTY_BLOCK_TYPE);
  loadCards(code, 0, start);
  code.op(Op.simdPrefix, Simd.anyTrue, Op.if, EMPTY_BLOCK_TYPE, Op.i32Const, 1, Op.return, Op.end);
  code.op(Op.localGet, start, Op.i32Const).s32(SCAN_BYTES).op(Op.i32Add, Op.localTee, start);
  code.op(Op.localGet, end, Op.i32Ne, Op.brIf, 0);
  code.op(Op.end, Op.i32Const, 0);
  return code.op(Op.end).written;
}

/**
 * Restores memory and globals from the snapshot and clears all cards. Each run of marked granules, and the granule
 * after it, is copied back; beyond the end of the snapshot it is zeroed. Returns the number of restored bytes, or
 * RESTORE_REFUSED when it exceeds `maxBytes`; the instance is unusable then. (i32 maxBytes) -> i32
 */
export function restoreBody(tracking: TrackingEnvironment): Body {
  const { cardMemory, snapshotBytesGlobal } = tracking;
  const [maxBytes, card, run, from, to, middle, total] = [0, 1, 2, 3, 4, 5, 6];
  const code = new BinaryWriter().u32(1).op(6, i32);

  code.op(Op.block, EMPTY_BLOCK_TYPE, Op.loop, EMPTY_BLOCK_TYPE); // scan
  code.op(Op.localGet, card, Op.i32Const).s32(tracking.cardCount).op(Op.i32GeU, Op.brIf, 1);
  loadCards(code, cardMemory, card);
  code.op(Op.simdPrefix, Simd.anyTrue, Op.i32Eqz, Op.if, EMPTY_BLOCK_TYPE);
  code.op(Op.localGet, card, Op.i32Const).s32(SCAN_BYTES).op(Op.i32Add, Op.localSet, card, Op.br, 1);
  code.op(Op.end);

  // One of these 64 cards is set: find the first.
  code.op(Op.loop, EMPTY_BLOCK_TYPE);
  loadCard(code, cardMemory, card);
  code.op(Op.i32Eqz, Op.if, EMPTY_BLOCK_TYPE);
  code.op(Op.localGet, card, Op.i32Const, 1, Op.i32Add, Op.localSet, card, Op.br, 1);
  code.op(Op.end, Op.end);
  // The last 64 cards may be partly out of use.
  code.op(Op.localGet, card, Op.i32Const).s32(tracking.cardCount).op(Op.i32GeU, Op.brIf, 1);
  // The run of set cards from there. It may extend beyond the last card in use, and is cleared completely.
  code.op(Op.localGet, card, Op.localSet, run);
  code.op(Op.loop, EMPTY_BLOCK_TYPE);
  code.op(Op.localGet, run, Op.i32Const, 0, Op.i32Store8, 0x40).u32(cardMemory).op(0);
  countTouched(code, tracking, run);
  code.op(Op.localGet, run, Op.i32Const, 1, Op.i32Add, Op.localTee, run);
  code.op(Op.i32Load8U, 0x40).u32(cardMemory).op(0).op(Op.brIf, 0);
  code.op(Op.end);
  // The granule after the run is written below.
  countTouched(code, tracking, run);

  // from = card << S; to = min((run + 1) << S, limit); middle = clamp(end of the snapshot, from, to)
  code.op(Op.localGet, card, Op.i32Const, CARD_SHIFT, Op.i32Shl, Op.localSet, from);
  code.op(Op.localGet, run, Op.i32Const, 1, Op.i32Add, Op.i32Const, CARD_SHIFT, Op.i32Shl, Op.localSet, to);
  clampAbove(code, to, tracking.limitBytes);
  code.op(Op.globalGet).u32(snapshotBytesGlobal).op(Op.localSet, middle);
  maxLocal(code, middle, from);
  minLocal(code, middle, to);
  code.op(Op.localGet, total, Op.localGet, to, Op.localGet, from, Op.i32Sub, Op.i32Add, Op.localTee, total);
  code.op(Op.localGet, maxBytes, Op.i32GtU, Op.if, EMPTY_BLOCK_TYPE);
  code.op(Op.i32Const).s32(RESTORE_REFUSED).op(Op.return, Op.end);
  // Copying zero bytes from beyond the snapshot's end would trap.
  code.op(Op.localGet, middle, Op.localGet, from, Op.i32GtU, Op.if, EMPTY_BLOCK_TYPE);
  code.op(Op.localGet, from, Op.localGet, from, Op.i32Const).s32(SNAPSHOT_START).op(Op.i32Add);
  code.op(Op.localGet, middle, Op.localGet, from, Op.i32Sub);
  code.op(Op.miscPrefix, Misc.memoryCopy).u32(0).u32(cardMemory).op(Op.end);
  code.op(Op.localGet, middle, Op.i32Const, 0, Op.localGet, to, Op.localGet, middle, Op.i32Sub);
  code.op(Op.miscPrefix, Misc.memoryFill, 0);
  // Continue at the start of the 64 cards that contain `run`; the lower ones are clear.
  code.op(Op.localGet, run, Op.i32Const).s32(-SCAN_BYTES).op(Op.i32And, Op.localSet, card, Op.br, 0);
  code.op(Op.end, Op.end);

  for (const { live, saved, isNeverNull } of tracking.savedGlobals) {
    code
      .op(Op.globalGet)
      .u32(saved)
      .op(...(isNeverNull ? [Op.refAsNonNull] : []));
    code.op(Op.globalSet).u32(live);
  }
  return code.op(Op.localGet, total, Op.end).written;
}

/** The initial value of a saved global of a type that is not a reference, or nullable. */
export function zeroOf(type: Uint8Array): Uint8Array {
  const code = new BinaryWriter();
  switch (type[0]) {
    case i32:
      return code.op(Op.i32Const, 0, Op.end).written;
    case i64:
      return code.op(Op.i64Const, 0, Op.end).written;
    case ValueType.f32:
      return code.op(Op.f32Const).bytes(new Uint8Array(4)).op(Op.end).written;
    case ValueType.f64:
      return code.op(Op.f64Const).bytes(new Uint8Array(8)).op(Op.end).written;
    case ValueType.v128:
      return code.op(Op.simdPrefix, Simd.const).bytes(new Uint8Array(16)).op(Op.end).written;
    default:
      return code.op(Op.refNull).bytes(heapTypeOf(type)).op(Op.end).written;
  }
}

/** Number of cards for a guest of `limitPages` pages. */
export function cardCount(limitPages: number): number {
  return (limitPages * PAGE_BYTES) / GRANULE_BYTES;
}

/** Subtracts the i32 on the operand stack times `factor` from the fuel; traps when none is left. */
function chargeI32(code: BinaryWriter, fuelGlobal: number, factor = 1): void {
  // fuel = (-amount) + fuel needs no local.
  code.op(Op.i64ExtendI32U, Op.i64Const).s64(-factor).op(Op.i64Mul, Op.globalGet).u32(fuelGlobal);
  code.op(Op.i64Add, Op.globalSet).u32(fuelGlobal);
  code.op(Op.globalGet).u32(fuelGlobal).op(Op.i64Const, 0, Op.i64LtS);
  code.op(Op.if, EMPTY_BLOCK_TYPE, Op.unreachable, Op.end);
}

/** 64 bytes at local `at` of a memory, combined with OR into one vector. */
function loadCards(code: BinaryWriter, memory: number, at: number): void {
  for (let offset = 0; offset < SCAN_BYTES; offset += 16) {
    code.op(Op.localGet, at, Op.simdPrefix, Simd.load, 0x40).u32(memory).u32(offset);
    if (offset > 0) {
      code.op(Op.simdPrefix, Simd.or);
    }
  }
}

function loadCard(code: BinaryWriter, memory: number, at: number): void {
  code.op(Op.localGet, at, Op.i32Load8U, 0x40).u32(memory).op(0);
}

/** Sets the flag of the granule of the card in local `card`, and counts it if it was not set. */
function countTouched(code: BinaryWriter, { cardMemory, touchedGlobal }: TrackingEnvironment, card: number): void {
  code.op(Op.localGet, card, Op.i32Load8U, 0x40).u32(cardMemory).u32(TOUCHED_START);
  code.op(Op.i32Eqz, Op.globalGet).u32(touchedGlobal).op(Op.i32Add, Op.globalSet).u32(touchedGlobal);
  code.op(Op.localGet, card, Op.i32Const, 1, Op.i32Store8, 0x40).u32(cardMemory).u32(TOUCHED_START);
}

/** local = min(local, limit), unsigned. 0 is a wrapped 2^32, so it becomes limit. */
function clampAbove(code: BinaryWriter, local: number, limit: number): void {
  code.op(Op.localGet, local, Op.i32Const, 1, Op.i32Sub, Op.i32Const).s32(limit);
  code.op(Op.i32GeU, Op.if, EMPTY_BLOCK_TYPE, Op.i32Const).s32(limit).op(Op.localSet, local, Op.end);
}

function maxLocal(code: BinaryWriter, local: number, other: number): void {
  code.op(Op.localGet, local, Op.localGet, other, Op.i32LtU);
  code.op(Op.if, EMPTY_BLOCK_TYPE, Op.localGet, other, Op.localSet, local, Op.end);
}

function minLocal(code: BinaryWriter, local: number, other: number): void {
  code.op(Op.localGet, local, Op.localGet, other, Op.i32GtU);
  code.op(Op.if, EMPTY_BLOCK_TYPE, Op.localGet, other, Op.localSet, local, Op.end);
}
