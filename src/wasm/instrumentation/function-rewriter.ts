import type { BinaryReader } from '../binary/binary-reader.ts';
import { BinaryWriter } from '../binary/binary-writer.ts';
import { WasmError } from '../binary/errors.ts';
import { Feature, unsupported } from '../binary/features.ts';
import {
  BLOCK_COST_THRESHOLD,
  BULK_FUEL,
  CARD_SHIFT,
  HOST_CALL_FUEL,
  MARK_REACH_BITS,
  MERGED_COST_LIMIT,
  MIN_BLOCK_COST,
  SMALL_BULK_BYTES,
  VALUES_PER_FUEL,
} from './metering.ts';
import { type FunctionCost, USUAL_FUNCTION_BYTES } from './module-bounds.ts';
import { NumberList } from '../binary/number-list.ts';
import {
  featureOfMisc,
  featureOfOpcode,
  featureOfSimd,
  Immediate,
  Misc,
  Op,
  PLAIN,
  Simd,
  ValueType,
} from '../binary/opcodes.ts';
import { readBlockType, readHeapType, readValueType } from '../binary/value-types.ts';

/** Indexes of the rewritten module that function bodies refer to. */
export interface CodeEnvironment {
  /** Type index by function index; imported functions come first. */
  readonly functionTypes: Uint32Array;
  /** Parameter and result counts by type index. */
  readonly typeParamCounts: Uint32Array;
  readonly typeResultCounts: Uint32Array;
  readonly importedFunctions: number;
  /** Index of the i64 global with the remaining fuel. */
  readonly fuelGlobal: number;
  /** Index of the i32 global with the guest's memory size in pages; undefined: `memory.size` is used. */
  readonly pagesGlobal: number | undefined;
  /** Index of the memory with the cards (one byte per granule); undefined: writes are not tracked. */
  readonly cardMemory: number | undefined;
  /** Indexes of the functions of `runtime-functions.ts`. */
  readonly growFunction: number;
  readonly bulkFunction: number;
  readonly tableFunction: number;
  readonly chargeFunction: number;
  /** Only when writes are tracked. */
  readonly markFunction: number;
}

/** Why instances of a module cannot be restored after a call: the code changes a table or drops a segment. */
export type Obstacle = 'table-mutation' | 'segment-drop';

/** Kinds of edits; `a` and `b` are their parameters. */
const Edit = {
  /** Charge region `a`. */
  charge: 0,
  /** Track a store of value type `a` at offset `b` with an address that is known only at run time. */
  storeUnknown: 1,
  /** Write mark `a`, after a store through a local. */
  mark: 2,
  /** Mark card `a`. */
  markCard: 3,
  /** memory.copy, memory.fill or memory.init. The operand stack holds destination, source or value, and length. */
  bulkMemory: 4,
  /** A table operation with its length on top of the operand stack. */
  bulkTable: 5,
  memorySize: 6,
  memoryGrow: 7,
  /** Write the marks of list `a`, before a loop. */
  loopMarks: 8,
} as const;
const EDIT_FIELDS = 5;

/** Kinds of operands besides the index of the local that an operand was read from. */
const UNKNOWN = -1;
const CONSTANT = -2;

/**
 * With more results than this, a call resets the tracked operand stack, so that hostile signatures cannot slow the
 * scan.
 */
const MAX_TRACKED_RESULTS = 16;

/**
 * Marks are hoisted out of loops up to this nesting depth. Each loop looks at the marks of its inner loops: without a
 * limit, a hostile function could make the scan quadratic.
 */
const MAX_HOISTING_DEPTH = 16;

/** V8's limit, which the tables by local rely on. */
const MAX_LOCALS = 50_000;

/** V8's baseline compiler saves all values twice for an `if`: for its two arms. */
const VALUES_OF_IF = 2;

const EMPTY_BLOCK_TYPE = 0x40;
const SELECT_WITH_TYPES = 0x1c;

/** An open block, loop, `if`, or the function itself. */
interface Frame {
  /** The region that is charged for the code after this block. */
  readonly outerRegion: number;
  /** Whether the block itself is unreachable. */
  readonly unreachableAtOpen: boolean;
  /** Height of the operand stack below the block's parameters. */
  readonly base: number;
  readonly parameters: number;
  readonly results: number;
  readonly isLoop: boolean;
  /** Length of the mark log when the block was opened. */
  readonly markLogLength: number;
  readonly loop: LoopState | undefined;
}

/** State of an open loop. */
interface LoopState {
  readonly number: number;
  readonly openedAt: number;
  /** `#marksSince` outside of the loop. */
  readonly marksSince: number;
  /** Index in `#loopMarks` of the loop's first mark. */
  readonly firstMark: number;
}

/**
 * Rewrites function bodies: adds fuel charges, marks the memory that stores write, and redirects memory growth to the
 * host. One object serves all functions of a module.
 *
 * Fuel. A body is divided into regions: stretches of code that are entered only at their head (function entry, loop
 * head, arm of an `if`, code after the end of a block). The head of a region is charged for the region's instructions,
 * except those of inner regions. Small regions are merged into the region around them. The head of a region dominates
 * its code and only loops repeat code, so every executed instruction is charged.
 *
 * Tracking. A store marks the card of the granule of its base address, and `restore` copies back a marked granule and
 * the one after it. One mark at address x therefore covers stores from x to x + one granule. A second store through the
 * same local needs no mark if the first mark is certain to have run since the local was last set. Marks in a loop
 * through a local that the loop does not set are hoisted in front of the loop. An extra mark is harmless: it restores
 * unchanged bytes, and it cannot trap because every address has a card.
 */
export class FunctionRewriter {
  readonly #env: CodeEnvironment;
  readonly #out = new BinaryWriter(4096);
  readonly #body = new BinaryWriter(4096);
  readonly #edits = new NumberList();
  readonly #frames: Frame[] = [];

  readonly #regionCost = new NumberList();
  readonly #regionParent = new NumberList();
  /** 1: never merged. */
  readonly #regionForced = new NumberList();
  /** The region charged for the current code, and whether that code is unreachable. */
  #region = 0;
  #unreachable = false;

  // The known top of the operand stack: the index of a local with the time of its read, or the value of a constant.
  readonly #operand: number[] = [];
  readonly #operandDetail: number[] = [];
  #depth = 0;

  // A clock that counts events and is never reset, so the tables by local need no clearing between functions.
  #now = 1;
  #marksSince = 0;
  #setAt = new Float64Array(64);
  /** Time and offset of the latest mark through each local that is certain to have run. */
  #markedAt = new Float64Array(64);
  #markedFrom = new Float64Array(64);
  /** Previous entries of the two tables (local, time, offset), undone at the end of a block. */
  readonly #markLog: number[] = [];
  /** All marks through locals, by their number. */
  readonly #markLocal = new NumberList();
  readonly #markOffset = new NumberList();
  /** 0: hoisted out of its place. */
  readonly #markAlive = new NumberList();
  /** Marks in the open loops that can still be hoisted. */
  readonly #loopMarks: number[] = [];
  /** Marks hoisted in front of a loop, by the number of the loop. Most loops have none. */
  readonly #hoistedMarks = new Map<number, number[]>();
  #loopCount = 0;
  #loopDepth = 0;

  /** Height of the operand stack, or more than it after SIMD instructions. */
  #height = 0;
  // See FunctionCost.
  #bodyBytes = 0;
  #loops = 0;
  #savedValues = 0;
  #passedValues = 0;

  #declaredLocals = 0;

  /**
   * Whether the function calls runtime functions for charges and marks. The memory of V8's optimizing compiler grows with the square of
   * the blocks: a function of 185 KB in Go takes 970 MiB with inline charges, 96 MiB with calls.
   */
  #isLarge = false;

  #localCount = 0;
  /** Types of the locals added to the function. */
  #temporaries: number[] = [];

  constructor(env: CodeEnvironment) {
    this.#env = env;
  }

  /**
   * Rewrites one function body.
   * @param reader spans exactly the body
   * @returns the new body without its size, valid until the next call; or, when writes are tracked, the obstacle to
   * restoring an instance of this module
   * @throws WasmError `feature-unsupported`, `module-invalid`
   */
  rewrite(reader: BinaryReader, paramCount: number, resultCount: number): Uint8Array | Obstacle {
    const bodyBytes = reader.end - reader.pos;
    const declarations = readLocals(reader);
    const codeStart = reader.pos;
    this.#isLarge = bodyBytes > USUAL_FUNCTION_BYTES;
    this.#begin(bodyBytes, paramCount + declarations.count);
    this.#declaredLocals += declarations.count;
    this.#openRegion(0, 1 + Math.floor(declarations.count / VALUES_PER_FUEL), true, codeStart);
    const obstacle = this.#scan(reader, resultCount);
    if (obstacle !== undefined) {
      return obstacle;
    }
    if (!reader.isAtEnd) {
      throw malformed(reader.pos);
    }
    this.#mergeSmallRegions();
    this.#applyEdits(reader.bytes, codeStart, reader.end);
    this.#body.clear().u32(declarations.groups + this.#temporaries.length);
    this.#body.range(reader.bytes, declarations.groupsStart, codeStart);
    for (const type of this.#temporaries) {
      this.#body.op(1, type);
    }
    return this.#body.bytes(this.#out.written).written;
  }

  /** What the latest function costs a compiler. */
  get cost(): FunctionCost {
    return {
      bodyBytes: this.#bodyBytes,
      loops: this.#loops,
      savedValues: this.#savedValues,
      passedValues: this.#passedValues,
    };
  }

  /** Locals besides parameters, of all functions so far. */
  get declaredLocals(): number {
    return this.#declaredLocals;
  }

  #begin(bodyBytes: number, localCount: number): void {
    this.#bodyBytes = bodyBytes;
    this.#edits.clear();
    this.#frames.length = 0;
    this.#regionCost.clear();
    this.#regionParent.clear();
    this.#regionForced.clear();
    this.#markLog.length = 0;
    this.#markLocal.clear();
    this.#markOffset.clear();
    this.#markAlive.clear();
    this.#loopMarks.length = 0;
    this.#hoistedMarks.clear();
    this.#loopCount = 0;
    this.#loopDepth = 0;
    this.#height = 0;
    this.#loops = 0;
    this.#savedValues = 0;
    this.#passedValues = 0;
    this.#temporaries = [];
    this.#depth = 0;
    this.#unreachable = false;
    this.#marksSince = ++this.#now;
    this.#localCount = localCount;
    if (this.#setAt.length < localCount) {
      this.#setAt = new Float64Array(localCount * 2);
      this.#markedAt = new Float64Array(localCount * 2);
      this.#markedFrom = new Float64Array(localCount * 2);
    }
  }

  // ---- Scanning: one pass over the code that collects the edits -----------------------------------------------------

  #scan(reader: BinaryReader, results: number): Obstacle | undefined {
    this.#frames.push({
      outerRegion: 0,
      unreachableAtOpen: false,
      base: 0,
      parameters: 0,
      results,
      isLoop: false,
      markLogLength: 0,
      loop: undefined,
    });
    while (this.#frames.length > 0) {
      const obstacle = this.#scanInstruction(reader);
      if (obstacle !== undefined) {
        return obstacle;
      }
    }
    return undefined;
  }

  #scanInstruction(reader: BinaryReader): Obstacle | undefined {
    const at = reader.pos;
    const opcode = reader.u8();
    switch (opcode) {
      case Op.block:
      case Op.loop:
      case Op.if:
        this.#open(opcode, at, reader);
        return undefined;
      case Op.else:
        this.#else(reader.pos);
        return undefined;
      case Op.end:
        this.#end(reader.pos);
        return undefined;
      case Op.br: {
        const cost = 1 + this.#branch(reader.u32());
        this.#saveValues(1);
        this.#jump(cost);
        return undefined;
      }
      case Op.brTable: {
        const targets = reader.u32() + 1;
        for (let target = 1; target < targets; target++) {
          reader.skipLeb();
        }
        const labels = Math.min(targets, this.#frames.length);
        const cost = 2 + this.#branch(reader.u32(), labels);
        this.#count(0, 1, 0);
        this.#saveValues(labels);
        this.#jump(cost);
        return undefined;
      }
      case Op.return:
        this.#jump(1 + this.#branch(this.#frames.length - 1));
        return undefined;
      case Op.unreachable:
        this.#jump(1);
        return undefined;
      case Op.returnCall: {
        const callee = reader.u32();
        this.#call(this.#callCost(callee), 0, this.#env.functionTypes[callee]);
        this.#jump(0);
        return undefined;
      }
      case Op.returnCallIndirect:
      case Op.returnCallRef:
        this.#call(HOST_CALL_FUEL, 1, this.#calledType(opcode, reader));
        this.#jump(0);
        return undefined;
      case Op.brIf:
      case Op.brOnNonNull:
        this.#count(1 + this.#branch(reader.u32()), 1, 0);
        this.#saveValues(1);
        return undefined;
      case Op.brOnNull:
        this.#count(1 + this.#branch(reader.u32()), 1, 1);
        this.#saveValues(1);
        return undefined;
      case Op.call: {
        const callee = reader.u32();
        this.#call(this.#callCost(callee), 0, this.#env.functionTypes[callee]);
        return undefined;
      }
      case Op.callIndirect:
      case Op.callRef:
        this.#call(2, 1, this.#calledType(opcode, reader));
        return undefined;
      case SELECT_WITH_TYPES:
        for (let types = reader.u32(); types > 0; types--) {
          readValueType(reader);
        }
        this.#count(1, 3, 1);
        return undefined;
      case Op.localGet:
        this.#count(1, 0, 0);
        this.#push(reader.u32(), this.#now);
        return undefined;
      case Op.localSet:
        this.#count(1, 1, 0);
        this.#setAt[reader.u32()] = ++this.#now;
        return undefined;
      case Op.localTee: {
        const local = reader.u32();
        this.#count(1, 1, 0);
        this.#setAt[local] = ++this.#now;
        this.#push(local, this.#now);
        return undefined;
      }
      case Op.i32Const:
        this.#count(1, 0, 0);
        this.#push(CONSTANT, reader.s32() >>> 0);
        return undefined;
      case Op.tableSet:
        reader.skipLeb();
        this.#count(1, 2, 0);
        return this.#obstacle('table-mutation');
      case Op.memorySize:
        reader.skipLeb();
        this.#count(1, 0, 1);
        if (this.#env.pagesGlobal !== undefined) {
          this.#edit(Edit.memorySize, at, reader.pos);
        }
        return undefined;
      case Op.memoryGrow:
        reader.skipLeb();
        this.#count(1, 1, 1);
        this.#edit(Edit.memoryGrow, at, reader.pos);
        return undefined;
      case Op.miscPrefix:
        return this.#scanMisc(reader, at);
      case Op.simdPrefix:
        this.#scanSimd(reader, at);
        return undefined;
      default:
        if (opcode >= Op.i32Store && opcode <= Op.i64Store32) {
          this.#store(at, reader, storedType(opcode));
        } else {
          this.#scanPlain(reader, opcode);
        }
        return undefined;
    }
  }

  #scanPlain(reader: BinaryReader, opcode: number): void {
    switch (PLAIN.immediate[opcode]) {
      case Immediate.none:
        break;
      case Immediate.index:
        reader.skipLeb();
        break;
      case Immediate.memory:
        readMemoryArgument(reader);
        break;
      case Immediate.bytes4:
        reader.skip(4);
        break;
      case Immediate.bytes8:
        reader.skip(8);
        break;
      case Immediate.heapType:
        readHeapType(reader);
        break;
      default:
        throw unsupported(featureOfOpcode(opcode, reader));
    }
    this.#count(1, PLAIN.pops[opcode] ?? 0, PLAIN.pushes[opcode] ?? 0);
  }

  #scanMisc(reader: BinaryReader, at: number): Obstacle | undefined {
    const opcode = reader.u32();
    switch (opcode) {
      case Misc.memoryInit:
      case Misc.memoryCopy:
        reader.skipLeb();
        reader.skipLeb();
        this.#count(BULK_FUEL, 3, 0);
        this.#edit(Edit.bulkMemory, at, reader.pos);
        return undefined;
      case Misc.memoryFill:
        reader.skipLeb();
        this.#count(BULK_FUEL, 3, 0);
        this.#edit(Edit.bulkMemory, at, reader.pos);
        return undefined;
      case Misc.dataDrop:
      case Misc.elemDrop:
        reader.skipLeb();
        this.#count(1, 0, 0);
        return this.#obstacle('segment-drop');
      case Misc.tableInit:
      case Misc.tableCopy:
        reader.skipLeb();
        reader.skipLeb();
        this.#count(1, 3, 0);
        this.#edit(Edit.bulkTable, at, reader.pos);
        return this.#obstacle('table-mutation');
      case Misc.tableFill:
        reader.skipLeb();
        this.#count(1, 3, 0);
        this.#edit(Edit.bulkTable, at, reader.pos);
        return this.#obstacle('table-mutation');
      case Misc.tableGrow:
        reader.skipLeb();
        this.#count(1, 2, 1);
        this.#edit(Edit.bulkTable, at, reader.pos);
        return this.#obstacle('table-mutation');
      case Misc.tableSize:
        reader.skipLeb();
        this.#count(1, 0, 1);
        return undefined;
      default:
        if (opcode > Misc.tableFill) {
          throw unsupported(featureOfMisc(opcode));
        }
        // Saturating truncations.
        this.#count(1, 1, 1);
        return undefined;
    }
  }

  #scanSimd(reader: BinaryReader, at: number): void {
    const opcode = reader.u32();
    if (opcode === Simd.store || (opcode >= Simd.firstStoreLane && opcode <= Simd.lastStoreLane)) {
      this.#store(at, reader, ValueType.v128, opcode !== Simd.store);
      return;
    }
    if (opcode <= Simd.lastPlainLoad || opcode === Simd.loadZero32 || opcode === Simd.loadZero64) {
      readMemoryArgument(reader);
      this.#count(1, 1, 1);
      return;
    }
    if (opcode === Simd.const) {
      reader.skip(16);
      this.#count(1, 0, 1);
      return;
    }
    if (opcode > Simd.last) {
      throw unsupported(featureOfSimd(opcode));
    }
    if (opcode >= Simd.firstLoadLane && opcode <= Simd.lastLoadLane) {
      readMemoryArgument(reader);
      reader.skip(1);
    } else if (opcode === Simd.shuffle) {
      reader.skip(16);
    } else if (opcode >= Simd.firstLane && opcode <= Simd.lastLane) {
      reader.skip(1);
    }
    // All other SIMD operations have no table of operands: the tracked operand stack is reset.
    this.#count(1, 0, 0);
    this.#depth = 0;
  }

  // ---- Control flow and regions ------------------------------------------------------------------------------------

  #open(opcode: number, at: number, reader: BinaryReader): void {
    const { parameters, results } = this.#blockType(reader);
    const after = reader.pos;
    const tested = opcode === Op.if ? 1 : 0;
    this.#count(tested + this.#pass(parameters + results), tested, 0);
    this.#saveValues(opcode === Op.if ? VALUES_OF_IF : 1);
    this.#depth = 0;
    const isTracked = this.#env.cardMemory !== undefined && !this.#unreachable;
    const loop = opcode === Op.loop && isTracked ? this.#openLoop(at) : undefined;
    this.#frames.push({
      outerRegion: this.#region,
      unreachableAtOpen: this.#unreachable,
      base: Math.max(this.#frames.at(-1)?.base ?? 0, this.#height - parameters),
      parameters,
      results,
      isLoop: opcode === Op.loop,
      markLogLength: this.#markLog.length,
      loop,
    });
    if (opcode === Op.loop) {
      this.#loops++;
      this.#openRegion(this.#region, 1, true, after);
    } else if (opcode === Op.if) {
      this.#openRegion(this.#region, 0, false, after);
    }
  }

  #blockType(reader: BinaryReader): { readonly parameters: number; readonly results: number } {
    const { type, results } = readBlockType(reader);
    const { typeParamCounts, typeResultCounts } = this.#env;
    return type === undefined
      ? { parameters: 0, results }
      : { parameters: typeParamCounts[type] ?? 0, results: typeResultCounts[type] ?? 0 };
  }

  #openLoop(at: number): LoopState {
    const number = this.#loopCount++;
    this.#edit(Edit.loopMarks, at, at, number);
    const state = {
      number,
      openedAt: ++this.#now,
      marksSince: this.#marksSince,
      firstMark: this.#loopMarks.length,
    };
    // After the first iteration, a mark from before the loop may refer to an older value of the local.
    this.#marksSince = ++this.#now;
    this.#loopDepth++;
    return state;
  }

  /** Hoists marks through locals that the loop does not set, unless an earlier mark covers them. */
  #closeLoop(loop: LoopState): void {
    this.#marksSince = loop.marksSince;
    const inside = this.#loopMarks.splice(loop.firstMark);
    if (this.#loopDepth-- > MAX_HOISTING_DEPTH) {
      return;
    }
    const hoisted: number[] = [];
    for (const mark of inside) {
      const local = this.#markLocal.at(mark);
      const offset = this.#markOffset.at(mark);
      if ((this.#setAt[local] ?? 0) > loop.openedAt) {
        continue;
      }
      this.#markAlive.set(mark, 0);
      if (!this.#isMarked(local, offset)) {
        hoisted.push(this.#newMark(local, offset, loop.openedAt));
      }
    }
    if (hoisted.length > 0) {
      this.#hoistedMarks.set(loop.number, hoisted);
    }
  }

  #else(after: number): void {
    const frame = this.#frames.at(-1);
    if (frame === undefined) {
      throw malformed(after);
    }
    this.#depth = 0;
    this.#height = frame.base + frame.parameters;
    this.#forgetMarks(frame);
    this.#unreachable = frame.unreachableAtOpen;
    this.#openRegion(frame.outerRegion, 0, false, after);
  }

  #end(after: number): void {
    const frame = this.#frames.pop();
    if (frame === undefined) {
      throw malformed(after);
    }
    this.#depth = 0;
    this.#height = frame.base + frame.results;
    this.#forgetMarks(frame);
    if (frame.loop !== undefined) {
      this.#closeLoop(frame.loop);
    }
    this.#region = frame.outerRegion;
    this.#unreachable = frame.unreachableAtOpen;
    if (this.#frames.length > 0) {
      // The code after a block (a case of a switch, the code after an early exit) is charged only when it runs.
      this.#openRegion(frame.outerRegion, 0, false, after);
    }
  }

  #jump(cost: number): void {
    this.#count(cost, 0, 0);
    this.#depth = 0;
    this.#unreachable = true;
  }

  /** Starts a new region, which lasts at least until the innermost open block ends. */
  #openRegion(parent: number, cost: number, forced: boolean, at: number): void {
    if (this.#unreachable) {
      return;
    }
    this.#region = this.#regionCost.length;
    this.#regionCost.push(cost);
    this.#regionParent.push(parent);
    this.#regionForced.push(forced ? 1 : 0);
    this.#edit(Edit.charge, at, at, this.#region, this.#height);
  }

  #mergeSmallRegions(): void {
    const merged = new Uint32Array(this.#regionCost.length);
    for (let region = this.#regionCost.length - 1; region > 0; region--) {
      const cost = this.#regionCost.at(region);
      const parent = this.#regionParent.at(region);
      const mergedSoFar = merged[parent] ?? 0;
      const isSmall = cost < MIN_BLOCK_COST || (cost < BLOCK_COST_THRESHOLD && mergedSoFar + cost <= MERGED_COST_LIMIT);
      if (isSmall && this.#regionForced.at(region) === 0) {
        merged[parent] = mergedSoFar + cost;
        this.#regionCost.set(parent, this.#regionCost.at(parent) + cost);
        this.#regionCost.set(region, 0);
      }
    }
  }

  #callCost(callee: number): number {
    return callee < this.#env.importedFunctions ? HOST_CALL_FUEL : 1;
  }

  /** The type index of a call through a table or a reference. */
  #calledType(opcode: number, reader: BinaryReader): number {
    const type = reader.u32();
    if (opcode === Op.callIndirect || opcode === Op.returnCallIndirect) {
      reader.skipLeb();
    }
    return type;
  }

  /** A call of a function of this type, with `operands` besides the parameters. */
  #call(cost: number, operands: number, type = 0): void {
    const parameters = this.#env.typeParamCounts[type] ?? 0;
    const results = this.#env.typeResultCounts[type] ?? 0;
    this.#count(cost + this.#pass(parameters + results), operands + parameters, results);
  }

  /** Fuel for the values that a branch passes to its label. */
  #branch(label: number, labels = 1): number {
    const target = this.#frames.at(-1 - label);
    const values = (target?.isLoop === true ? target.parameters : target?.results) ?? 0;
    return this.#pass(values, labels);
  }

  /** Counts values that a call or block passes, and returns the fuel for it: an instruction may pass a thousand. */
  #pass(values: number, times = 1): number {
    this.#passedValues += values * times;
    return Math.floor(values / VALUES_PER_FUEL);
  }

  /** Adds an instruction's cost and applies its effect on the tracked operand stack. */
  #count(cost: number, pops: number, pushes: number): void {
    this.#regionCost.set(this.#region, this.#regionCost.at(this.#region) + cost);
    this.#height = Math.max(this.#frames.at(-1)?.base ?? 0, this.#height - pops) + pushes;
    this.#depth = Math.max(0, this.#depth - pops);
    if (pushes > MAX_TRACKED_RESULTS) {
      this.#depth = 0;
      return;
    }
    for (let index = 0; index < pushes; index++) {
      this.#track(UNKNOWN, 0);
    }
  }

  /** Pushes a local or a constant, which a store may use as its address. */
  #push(operand: number, detail: number): void {
    this.#height++;
    this.#track(operand, detail);
  }

  /** Counts what V8's baseline compiler saves at labels: the value of each local and operand. */
  #saveValues(labels: number): void {
    if (!this.#unreachable) {
      this.#savedValues += labels * (this.#localCount + this.#height);
    }
  }

  #track(operand: number, detail: number): void {
    this.#operand[this.#depth] = operand;
    this.#operandDetail[this.#depth] = detail;
    this.#depth++;
  }

  #edit(kind: number, from: number, to: number, a = 0, b = 0): void {
    if (!this.#unreachable) {
      const edits = this.#edits;
      edits.push(kind);
      edits.push(from);
      edits.push(to);
      edits.push(a);
      edits.push(b);
    }
  }

  #obstacle(obstacle: Obstacle): Obstacle | undefined {
    return this.#env.cardMemory === undefined ? undefined : obstacle;
  }

  // ---- Stores ------------------------------------------------------------------------------------------------------

  #store(at: number, reader: BinaryReader, type: number, hasLane = false): void {
    const offset = readMemoryArgument(reader);
    if (hasLane) {
      reader.skip(1);
    }
    if (this.#env.cardMemory !== undefined && !this.#unreachable) {
      this.#trackStore(at, reader.pos, type, offset);
    }
    this.#count(1, 2, 0);
  }

  #trackStore(from: number, to: number, type: number, offset: number): void {
    const base = this.#depth >= 2 ? (this.#operand[this.#depth - 2] ?? UNKNOWN) : UNKNOWN;
    const detail = this.#operandDetail[this.#depth - 2] ?? 0;
    if (base === CONSTANT && detail + offset <= 0xffff_ffff) {
      this.#edit(Edit.markCard, to, to, (detail + offset) >>> CARD_SHIFT);
      return;
    }
    const setAt = base >= 0 ? (this.#setAt[base] ?? 0) : 0;
    if (base < 0 || setAt > detail) {
      this.#edit(Edit.storeUnknown, from, to, type, offset);
      return;
    }
    const rounded = roundedOffset(offset);
    if (!this.#isMarked(base, rounded)) {
      const mark = this.#newMark(base, rounded, ++this.#now);
      this.#edit(Edit.mark, to, to, mark);
    }
  }

  /** Whether a mark through `local` at `offset` is certain to have run since the local was last set. */
  #isMarked(local: number, offset: number): boolean {
    const markedAt = this.#markedAt[local] ?? 0;
    return markedAt > (this.#setAt[local] ?? 0) && markedAt > this.#marksSince && this.#markedFrom[local] === offset;
  }

  #newMark(local: number, offset: number, time: number): number {
    this.#markLog.push(local, this.#markedAt[local] ?? 0, this.#markedFrom[local] ?? 0);
    this.#markedAt[local] = time;
    this.#markedFrom[local] = offset;
    const mark = this.#markLocal.length;
    this.#markLocal.push(local);
    this.#markOffset.push(offset);
    this.#markAlive.push(1);
    if (this.#loopDepth > 0) {
      this.#loopMarks.push(mark);
    }
    return mark;
  }

  /** Undoes the marks of a block at its end: a branch may have skipped them. */
  #forgetMarks(frame: Frame): void {
    const log = this.#markLog;
    while (log.length > frame.markLogLength) {
      const offset = log.pop() ?? 0;
      const time = log.pop() ?? 0;
      const local = log.pop() ?? 0;
      this.#markedAt[local] = time;
      this.#markedFrom[local] = offset;
    }
  }

  // ---- Writing -----------------------------------------------------------------------------------------------------

  #applyEdits(source: Uint8Array, start: number, end: number): void {
    const out = this.#out.clear();
    const edits = this.#edits;
    let copied = start;
    for (let index = 0; index < edits.length; index += EDIT_FIELDS) {
      const from = edits.at(index + 1);
      const to = edits.at(index + 2);
      const a = edits.at(index + 3);
      const b = edits.at(index + 4);
      out.range(source, copied, from);
      copied = to;
      switch (edits.at(index)) {
        case Edit.charge:
          this.#writeCharge(this.#regionCost.at(a), b);
          break;
        case Edit.storeUnknown:
          this.#writeUnknownStore(source, from, to, a, b);
          break;
        case Edit.mark:
          this.#writeLocalMark(a);
          break;
        case Edit.loopMarks:
          for (const mark of this.#hoistedMarks.get(a) ?? []) {
            this.#writeLocalMark(mark);
          }
          break;
        case Edit.markCard:
          out.op(Op.i32Const).s32(a);
          this.#writeCardStore();
          break;
        case Edit.bulkMemory:
          this.#writeBulkMemory(source, from, to);
          break;
        case Edit.bulkTable: {
          const length = this.#temporary(ValueType.i32, 0);
          out.op(Op.localTee).u32(length).op(Op.call).u32(this.#env.tableFunction).op(Op.localGet).u32(length);
          out.range(source, from, to);
          break;
        }
        case Edit.memorySize:
          out.op(Op.globalGet).u32(this.#env.pagesGlobal ?? 0);
          break;
        default:
          out.op(Op.call).u32(this.#env.growFunction);
      }
    }
    out.range(source, copied, end);
  }

  #writeCharge(cost: number, height: number): void {
    if (cost === 0) {
      return;
    }
    if (this.#isLarge) {
      this.#out.op(Op.i32Const).s32(cost).op(Op.call).u32(this.#env.chargeFunction);
      return;
    }
    this.#savedValues += VALUES_OF_IF * (this.#localCount + height);
    const fuel = this.#env.fuelGlobal;
    const left = this.#temporary(ValueType.i64, 0);
    this.#out.op(Op.globalGet).u32(fuel).op(Op.i64Const).s64(cost).op(Op.i64Sub);
    this.#out.op(Op.localTee).u32(left).op(Op.globalSet).u32(fuel);
    this.#out.op(Op.localGet).u32(left).op(Op.i64Const, 0, Op.i64LtS);
    this.#out.op(Op.if, EMPTY_BLOCK_TYPE, Op.unreachable, Op.end);
  }

  /** The store, then a mark at its address, which a temporary local keeps. */
  #writeUnknownStore(source: Uint8Array, from: number, to: number, type: number, offset: number): void {
    const address = this.#temporary(ValueType.i32, 0);
    const value = this.#temporary(type, type === ValueType.i32 ? 1 : 0);
    this.#out.op(Op.localSet).u32(value).op(Op.localTee).u32(address).op(Op.localGet).u32(value);
    this.#out.range(source, from, to);
    this.#writeMark(address, offset);
  }

  #writeLocalMark(mark: number): void {
    if (this.#markAlive.at(mark) === 1) {
      this.#writeMark(this.#markLocal.at(mark), this.#markOffset.at(mark));
    }
  }

  #writeMark(local: number, offset: number): void {
    const rounded = roundedOffset(offset);
    this.#out.op(Op.localGet).u32(local);
    if (rounded !== 0) {
      this.#out.op(Op.i32Const).s32(rounded).op(Op.i32Add);
    }
    if (this.#isLarge) {
      this.#out.op(Op.call).u32(this.#env.markFunction);
      return;
    }
    this.#out.op(Op.i32Const).s32(CARD_SHIFT).op(Op.i32ShrU);
    this.#writeCardStore();
  }

  /** Sets the card whose index is on the operand stack. */
  #writeCardStore(): void {
    const hasMemoryIndex = 0x40;
    this.#out.op(Op.i32Const, 1, Op.i32Store8, hasMemoryIndex);
    this.#out.u32(this.#env.cardMemory ?? 0).op(0);
  }

  /**
   * Small ranges, by far the most common, are marked inline for a flat price; larger ones call the runtime function.
   */
  #writeBulkMemory(source: Uint8Array, from: number, to: number): void {
    const target = this.#temporary(ValueType.i32, 0);
    const middle = this.#temporary(ValueType.i32, 1);
    const length = this.#temporary(ValueType.i32, 2);
    this.#out.op(Op.localSet).u32(length).op(Op.localSet).u32(middle).op(Op.localSet).u32(target);
    // 0 - 1 wraps around, so an empty range takes the other path: its address may be beyond the last card.
    this.#out.op(Op.localGet).u32(length).op(Op.i32Const, 1, Op.i32Sub, Op.i32Const).s32(SMALL_BULK_BYTES);
    this.#out.op(Op.i32GeU, Op.if, EMPTY_BLOCK_TYPE);
    this.#out.op(Op.localGet).u32(target).op(Op.localGet).u32(length).op(Op.call).u32(this.#env.bulkFunction);
    if (this.#env.cardMemory !== undefined) {
      this.#out.op(Op.else);
      this.#writeMark(target, 0);
    }
    this.#out.op(Op.end);
    this.#out.op(Op.localGet).u32(target).op(Op.localGet).u32(middle).op(Op.localGet).u32(length);
    this.#out.range(source, from, to);
  }

  /** Index of the added local number `which` of this type. */
  #temporary(type: number, which: number): number {
    let seen = 0;
    for (let index = 0; index < this.#temporaries.length; index++) {
      if (this.#temporaries[index] === type && seen++ === which) {
        return this.#localCount + index;
      }
    }
    while (seen <= which) {
      this.#temporaries.push(type);
      seen++;
    }
    return this.#localCount + this.#temporaries.length - 1;
  }
}

interface LocalDeclarations {
  readonly groups: number;
  readonly groupsStart: number;
  readonly count: number;
}

function readLocals(reader: BinaryReader): LocalDeclarations {
  const groups = reader.u32();
  const groupsStart = reader.pos;
  let count = 0;
  for (let group = 0; group < groups; group++) {
    count += reader.u32();
    readValueType(reader);
  }
  if (count > MAX_LOCALS) {
    throw new WasmError('module-invalid', `a function has ${count} locals: expected at most ${MAX_LOCALS}`);
  }
  return { groups, groupsStart, count };
}

/** Reads alignment and offset, and returns the offset. */
function readMemoryArgument(reader: BinaryReader): number {
  // Bits 0 to 5 are the alignment; bit 6 means that a memory index follows.
  if (reader.u32() >= 0x40) {
    throw unsupported(Feature.multiMemory);
  }
  return reader.u32();
}

/** The offset of the mark for a store at `offset`: see MARK_REACH_BITS. */
function roundedOffset(offset: number): number {
  return offset - (offset % (1 << MARK_REACH_BITS));
}

function storedType(opcode: number): number {
  switch (opcode) {
    case Op.i32Store:
    case Op.i32Store8:
    case Op.i32Store16:
      return ValueType.i32;
    case Op.f32Store:
      return ValueType.f32;
    case Op.f64Store:
      return ValueType.f64;
    default:
      return ValueType.i64;
  }
}

function malformed(at: number): WasmError {
  return new WasmError('module-invalid', `malformed function body at byte ${at} of the module`);
}
