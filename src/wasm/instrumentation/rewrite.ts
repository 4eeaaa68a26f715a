import { BinaryReader } from '../binary/binary-reader.ts';
import { BinaryWriter } from '../binary/binary-writer.ts';
import { WasmError } from '../binary/errors.ts';
import { Feature, Proposal, unsupported } from '../binary/features.ts';
import { FunctionRewriter } from './function-rewriter.ts';
import type { CodeEnvironment, Obstacle } from './function-rewriter.ts';
import {
  checkCount,
  checkFunction,
  checkSize,
  largestOf,
  MAX_DECLARED_LOCALS,
  MAX_GLOBALS,
  MAX_TYPES,
  MAX_TYPE_VALUES,
  NO_COST,
} from './module-bounds.ts';
import type { FunctionCost } from './module-bounds.ts';
import { INIT_FUEL, PAGE_BYTES } from './metering.ts';
import { featureOfOpcode, Op, Simd, ValueType } from '../binary/opcodes.ts';
import {
  bulkBody,
  chargeBody,
  markBody,
  cardCount,
  growBody,
  isUsedBody,
  restoreBody,
  snapshotBody,
  tableBody,
  TRACKING_PAGES,
  zeroOf,
} from './runtime-functions.ts';
import type { TrackingEnvironment } from './runtime-functions.ts';
import { SectionId } from '../binary/section-id.ts';
import { readTypes } from '../binary/type-section.ts';
import { nullable, readHeapType, readReferenceType, readValueType } from '../binary/value-types.ts';
import type { Doubts } from './trial-compilation.ts';
import { validateRead } from './validation.ts';

/** Names of the exports that the rewriter adds for the host. A module with an export of this prefix is rejected. */
export const PRIVATE_PREFIX = '\u0001portcullis:';
export const PrivateExport = {
  memory: `${PRIVATE_PREFIX}memory`,
  cards: `${PRIVATE_PREFIX}cards`,
  fuel: `${PRIVATE_PREFIX}fuel`,
  pages: `${PRIVATE_PREFIX}pages`,
  start: `${PRIVATE_PREFIX}start`,
  touched: `${PRIVATE_PREFIX}touched`,
  snapshot: `${PRIVATE_PREFIX}snapshot`,
  restore: `${PRIVATE_PREFIX}restore`,
} as const;

/** Maximum number of functions: ten times that of the largest Go policies (about 30,000). V8's limit is 1,000,000. */
const MAX_FUNCTIONS = 300_000;

/**
 * Every instance creates its imports and exports as objects of the JavaScript heap. Published modules have fewer than
 * 100.
 */
const MAX_IMPORTS_AND_EXPORTS = 20_000;

/** Maximum entries of all tables together: 24 bytes each in V8's native memory, where exhaustion ends the process. */
const MAX_TABLE_ENTRIES = 1_048_576;

/** Maximum number of tables. Compilers emit one, and a few more with reference types. */
export const MAX_TABLES = 16;

/** Maximum linear memory in pages (1 GiB), so that addresses and sizes fit in 31 bits. */
const MAX_MEMORY_PAGES = 16_384;

/** A rewritten module and its properties. */
export interface RewrittenModule {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of these, the bodies of functions. */
  readonly codeBytes: number;
  /** What may take too much memory or time to compile; undefined: nothing. */
  readonly doubts: Doubts | undefined;
  /** The largest of each cost among its functions. */
  readonly largestCosts: FunctionCost;
  readonly functions: number;
  readonly hasMemory: boolean;
  /** Maximum memory of the guest in pages. */
  readonly memoryPages: number;
  readonly hasStart: boolean;
  readonly functionImports: readonly { readonly module: string; readonly name: string }[];
  readonly functionExports: readonly string[];
  readonly globalExports: readonly string[];
}

/** Published modules grow by 10 to 51 %. */
const USUAL_GROWTH = 1.5;

const FUNCTION_FORM = 0x60;
/** First byte of a table whose entries have an initial value, which those that are never null need. */
const INITIALIZED_TABLE = 0x40;
/** In place of the kind of an import: several imports of one module follow. */
const COMPACT_IMPORTS: readonly number[] = [0x7e, 0x7f];
const HEADER_BYTES = 8;
const EXPORT_FUNCTION = 0;
const EXPORT_MEMORY = 2;
const EXPORT_GLOBAL = 3;

interface GlobalType {
  /** Encoded. */
  readonly type: Uint8Array;
  readonly mutable: boolean;
  /** The initial value of an i32 global, if it is a constant. */
  readonly i32Value: number | undefined;
}

interface Limits {
  readonly min: number;
  readonly max: number | undefined;
}

/**
 * Adds fuel, a memory limit and (with `tracked`) write tracking to a module. Whether V8 accepts the module is to be checked, too.
 * @param limitPages maximum memory of the guest
 * @returns the new module, or the obstacle to tracking its writes
 * @throws WasmError `feature-unsupported`, `module-invalid`, `module-too-costly`, `import-missing`, `memory-limit`
 */
export function rewriteModule(bytes: Uint8Array, limitPages: number, tracked: boolean): RewrittenModule | Obstacle {
  const rewriter = new ModuleRewriter(bytes, limitPages, tracked);
  try {
    return rewriter.rewrite();
  } catch (error) {
    validateRead(bytes, rewriter.readTo, error);
    throw error;
  }
}

class ModuleRewriter {
  readonly #bytes: Uint8Array;
  readonly #limitPages: number;
  #tracked: boolean;
  /** Position of each section's content, by section id. */
  readonly #sections = new Map<number, { from: number; to: number }>();

  readonly #typeParams: number[] = [];
  readonly #typeResults: number[] = [];
  /** Type index by function index; imported functions come first. */
  readonly #functionTypes: number[] = [];
  readonly #functionImports: { module: string; name: string }[] = [];
  readonly #functionExports: string[] = [];
  readonly #globalExports: string[] = [];
  readonly #globals: GlobalType[] = [];
  #isMemoryImported = false;
  #memory: Limits | undefined;
  readonly #doubtful = new Set<number>();
  #doubt: string | undefined;
  #largestCosts: FunctionCost = NO_COST;
  #readTo = 0;

  constructor(bytes: Uint8Array, limitPages: number, tracked: boolean) {
    this.#bytes = bytes;
    this.#limitPages = Math.min(limitPages, MAX_MEMORY_PAGES);
    this.#tracked = tracked;
  }

  /** The end of the last function body that was read; 0: none was. */
  get readTo(): number {
    return this.#readTo;
  }

  rewrite(): RewrittenModule | Obstacle {
    this.#findSections();
    const types = this.#readTypes();
    const imports = this.#readImports();
    const functions = this.#readFunctions();
    const tables = this.#rewriteTables();
    this.#readMemory();
    const globals = this.#readGlobals();
    const exports = this.#readExports();
    const start = this.#read(SectionId.start)?.u32();
    const memory = this.#memory === undefined ? undefined : this.#extendToData(this.#memory);
    const memoryPages = memory === undefined ? 0 : this.#memoryBound(memory);
    this.#tracked &&= memory !== undefined;

    // Indexes of the added functions and globals.
    const importedFunctions = this.#functionImports.length;
    const added = this.#functionTypes.length;
    const [bulk, table, charge, grow] = [added, added + 1, added + 2, added + 3] as const;
    const [snapshot, restore, isUsed, mark] = [grow + 1, grow + 2, grow + 3, grow + 4] as const;
    const fuelGlobal = this.#globals.length;
    const tracking = this.#tracked && memory !== undefined ? this.#tracking(memoryPages) : undefined;

    const codeEnvironment: CodeEnvironment = {
      functionTypes: Uint32Array.from(this.#functionTypes),
      typeParamCounts: Uint32Array.from(this.#typeParams),
      typeResultCounts: Uint32Array.from(this.#typeResults),
      importedFunctions,
      fuelGlobal,
      pagesGlobal: tracking?.pagesGlobal,
      cardMemory: tracking?.cardMemory,
      growFunction: grow,
      bulkFunction: bulk,
      tableFunction: table,
      chargeFunction: charge,
      markFunction: mark,
    };

    // Types of the added functions: (i32) -> (), (i32 i32) -> (), (i32) -> i32.
    const { i32 } = ValueType;
    const helperTypes = [
      [FUNCTION_FORM, 1, i32, 0],
      [FUNCTION_FORM, 2, i32, i32, 0],
      [FUNCTION_FORM, 1, i32, 1, i32],
    ];
    const firstType = this.#typeParams.length;
    const [fromNumber, fromRange, toNumber] = [firstType, firstType + 1, firstType + 2];
    const environment = { fuelGlobal, tracking };
    const helpers: [type: number, body: Uint8Array][] = [
      [fromRange, bulkBody(environment)],
      [fromNumber, tableBody(environment)],
      [fromNumber, chargeBody(environment)],
    ];
    if (memory !== undefined) {
      helpers.push([toNumber, growBody(environment)]);
    }
    if (tracking !== undefined) {
      helpers.push([toNumber, snapshotBody(tracking, restore, isUsed)]);
      helpers.push([toNumber, restoreBody(tracking)]);
      helpers.push([toNumber, isUsedBody()]);
      helpers.push([fromNumber, markBody(tracking)]);
    }

    const memories = memory === undefined ? [] : this.#memories(memory, memoryPages);
    const newGlobals = this.#newGlobals(tracking, memory?.min ?? 0);
    const newExports = this.#newExports({
      fuelGlobal,
      tracking,
      start,
      snapshot,
      restore,
      hasMemory: memories.length > 0,
    });

    const out = new BinaryWriter(Math.ceil(this.#bytes.length * USUAL_GROWTH));
    out.bytes(this.#bytes.subarray(0, HEADER_BYTES));
    const addedTypes = helperTypes.map((bytes) => Uint8Array.from(bytes));
    writeSection(out, SectionId.type, appendEntries(types, addedTypes));
    writeSection(out, SectionId.import, imports);
    const helperIndexes = helpers.map(([type]) => new BinaryWriter().u32(type).written);
    writeSection(out, SectionId.function, appendEntries(functions, helperIndexes));
    writeSection(out, SectionId.table, tables);
    writeSection(out, SectionId.memory, memories.length === 0 ? undefined : appendEntries(NO_ENTRIES, memories));
    writeSection(out, SectionId.global, appendEntries(globals, newGlobals));
    writeSection(out, SectionId.export, appendEntries(exports, newExports));
    writeSection(out, SectionId.element, this.#content(SectionId.element));
    writeSection(out, SectionId.dataCount, this.#content(SectionId.dataCount));
    const helperBodies = helpers.map(([, body]) => body);
    const codeFrom = out.length;
    const obstacle = this.#writeCode(out, functions.count, codeEnvironment, helperBodies);
    if (obstacle !== undefined) {
      return obstacle;
    }
    const codeBytes = out.length - codeFrom;
    writeSection(out, SectionId.data, this.#content(SectionId.data));
    return {
      bytes: out.written,
      codeBytes,
      doubts: this.#doubt === undefined ? undefined : { functions: this.#doubtful, shown: this.#doubt },
      largestCosts: this.#largestCosts,
      functions: this.#functionTypes.length,
      hasMemory: memory !== undefined,
      memoryPages,
      hasStart: start !== undefined,
      functionImports: this.#functionImports,
      functionExports: this.#functionExports,
      globalExports: this.#globalExports,
    };
  }

  // ---- Reading -----------------------------------------------------------------------------------------------------

  #findSections(): void {
    const reader = new BinaryReader(this.#bytes, HEADER_BYTES);
    while (!reader.isAtEnd) {
      const id = reader.u8();
      const size = reader.u32();
      const from = reader.pos;
      reader.skip(size);
      if (id === SectionId.tag) {
        throw unsupported(Feature.exceptions);
      }
      if (id > SectionId.tag) {
        throw unsupported(`section ${id}`);
      }
      if (id !== SectionId.custom) {
        this.#sections.set(id, { from, to: reader.pos });
      }
    }
  }

  #read(id: number): BinaryReader | undefined {
    const section = this.#sections.get(id);
    return section && new BinaryReader(this.#bytes, section.from, section.to);
  }

  #content(id: number): Uint8Array | undefined {
    const section = this.#sections.get(id);
    return section && this.#bytes.subarray(section.from, section.to);
  }

  /** Reads a section entry by entry; `check` sees the number of entries first. */
  #readEntries(
    id: number,
    readEntry: (reader: BinaryReader) => void,
    check: (count: number) => void = () => {},
  ): Entries {
    const reader = this.#read(id);
    if (reader === undefined) {
      return NO_ENTRIES;
    }
    const count = reader.u32();
    check(count);
    const from = reader.pos;
    for (let index = 0; index < count; index++) {
      readEntry(reader);
    }
    return { count, bytes: this.#bytes.subarray(from, reader.end) };
  }

  #readTypes(): Entries {
    let values = 0;
    return this.#readEntries(SectionId.type, (reader) =>
      readTypes(reader, (parameters, results) => {
        this.#typeParams.push(parameters);
        this.#typeResults.push(results);
        values += parameters + results;
        checkCount('function types', this.#typeParams.length, MAX_TYPES);
        checkCount('parameters and results of all function types together', values, MAX_TYPE_VALUES);
      }),
    );
  }

  /** Returns the import section without the imported memory, which becomes a memory of the module. */
  #readImports(): Uint8Array | undefined {
    const reader = this.#read(SectionId.import);
    if (reader === undefined) {
      return undefined;
    }
    const kept: Uint8Array[] = [];
    const count = reader.u32();
    checkCount('imports', count, MAX_IMPORTS_AND_EXPORTS);
    for (let index = 0; index < count; index++) {
      const from = reader.pos;
      const module = reader.name();
      const name = reader.name();
      const kind = reader.u8();
      if (kind === 0) {
        this.#functionTypes.push(reader.u32());
        this.#functionImports.push({ module, name });
        kept.push(this.#bytes.subarray(from, reader.pos));
      } else if (kind === 2) {
        this.#setMemory(readMemoryLimits(reader));
        this.#isMemoryImported = true;
      } else if (kind === 4) {
        throw unsupported(Feature.exceptions);
      } else if (kind !== 1 && kind !== 3) {
        throw unsupported(COMPACT_IMPORTS.includes(kind) ? Proposal.compactImports : `imports of kind ${kind}`);
      } else {
        throw new WasmError(
          'import-missing',
          `the module imports the ${kind === 1 ? 'table' : 'global'} ${module}.${name}: expected imports of functions ` +
            'and one memory only, because hosts provide nothing else',
        );
      }
    }
    return appendEntries(NO_ENTRIES, kept);
  }

  #readFunctions(): Entries {
    return this.#readEntries(
      SectionId.function,
      (reader) => this.#functionTypes.push(reader.u32()),
      (count) => checkCount('functions', count, MAX_FUNCTIONS),
    );
  }

  /** The table section, with the maximum of each table limited. */
  #rewriteTables(): Uint8Array | undefined {
    const reader = this.#read(SectionId.table);
    if (reader === undefined) {
      return undefined;
    }
    const count = reader.u32();
    checkCount('tables', count, MAX_TABLES);
    const maxPerTable = Math.floor(MAX_TABLE_ENTRIES / Math.max(count, 1));
    const tables: Uint8Array[] = [];
    let entries = 0;
    for (let index = 0; index < count; index++) {
      const isInitialized = reader.peek() === INITIALIZED_TABLE;
      if (isInitialized) {
        reader.skip(2);
      }
      const typeFrom = reader.pos;
      readReferenceType(reader);
      const type = this.#bytes.subarray(typeFrom, reader.pos);
      const flags = reader.u8();
      if (flags > 1) {
        throw unsupported(flags === 3 ? Feature.threads : Feature.table64);
      }
      const min = reader.u32();
      const max = flags === 1 ? reader.u32() : MAX_TABLE_ENTRIES;
      entries += min;
      checkCount('table entries', entries, MAX_TABLE_ENTRIES);
      const clamped = Math.max(min, Math.min(max, maxPerTable));
      const table = new BinaryWriter().op(...(isInitialized ? [INITIALIZED_TABLE, 0] : [])).bytes(type);
      table.op(1).u32(min).u32(clamped);
      tables.push(isInitialized ? table.bytes(this.#constantBytes(reader)).written : table.written);
    }
    return appendEntries(NO_ENTRIES, tables);
  }

  #readMemory(): void {
    const reader = this.#read(SectionId.memory);
    if (reader === undefined) {
      return;
    }
    for (let count = reader.u32(); count > 0; count--) {
      this.#setMemory(readMemoryLimits(reader));
    }
  }

  #setMemory(limits: Limits): void {
    if (this.#memory !== undefined) {
      throw unsupported(Feature.multiMemory);
    }
    this.#memory = limits;
  }

  #memoryBound(memory: Limits): number {
    const bound = Math.min(memory.max ?? this.#limitPages, this.#limitPages);
    if (memory.min > bound) {
      throw new WasmError(
        'memory-limit',
        `the module needs ${memory.min} pages of memory at the start: expected at most ${bound} pages of 64 KiB; ` +
          'raise the memory limit or build the policy with less memory',
      );
    }
    return bound;
  }

  #readGlobals(): Entries {
    return this.#readEntries(
      SectionId.global,
      (reader) => {
        const from = reader.pos;
        readValueType(reader);
        const type = this.#bytes.subarray(from, reader.pos);
        const flags = reader.u8();
        if (flags > 1) {
          throw unsupported(Proposal.sharedEverything);
        }
        this.#globals.push({ type, mutable: flags === 1, i32Value: this.#readConstant(reader) });
      },
      (count) => checkCount('globals', count, MAX_GLOBALS),
    );
  }

  /** A constant expression as it is. */
  #constantBytes(reader: BinaryReader): Uint8Array {
    const from = reader.pos;
    this.#readConstant(reader);
    return this.#bytes.subarray(from, reader.pos);
  }

  /** Reads a constant expression and returns its value if it is an i32. */
  #readConstant(reader: BinaryReader): number | undefined {
    const stack: (number | undefined)[] = [];
    for (;;) {
      const opcode = reader.u8();
      switch (opcode) {
        case Op.end:
          return stack.at(-1);
        case Op.i32Const:
          stack.push(reader.s32());
          break;
        case Op.i64Const:
        case Op.refFunc:
          reader.skipLeb();
          stack.push(undefined);
          break;
        case Op.f32Const:
          reader.skip(4);
          stack.push(undefined);
          break;
        case Op.f64Const:
          reader.skip(8);
          stack.push(undefined);
          break;
        case Op.refNull:
          readHeapType(reader);
          stack.push(undefined);
          break;
        case Op.globalGet: {
          const global = this.#globals[reader.u32()];
          stack.push(global?.mutable === false ? global.i32Value : undefined);
          break;
        }
        case Op.i32Add:
        case Op.i32Sub:
        case Op.i32Mul:
        case Op.i64Add:
        case Op.i64Sub:
        case Op.i64Mul: {
          const right = stack.pop();
          const left = stack.pop();
          stack.push(left === undefined || right === undefined ? undefined : constantResult(opcode, left, right));
          break;
        }
        case Op.simdPrefix:
          if (reader.u32() !== Simd.const) {
            throw unsupported('a computed vector constant');
          }
          reader.skip(16);
          stack.push(undefined);
          break;
        default:
          throw unsupported(`${featureOfOpcode(opcode, reader)} in a constant`);
      }
    }
  }

  #readExports(): Entries {
    return this.#readEntries(
      SectionId.export,
      (reader) => this.#readExport(reader),
      (count) => checkCount('exports', count, MAX_IMPORTS_AND_EXPORTS),
    );
  }

  #readExport(reader: BinaryReader): void {
    const name = reader.name();
    if (name.startsWith(PRIVATE_PREFIX)) {
      throw new WasmError(
        'module-invalid',
        `the module exports "${name}": names with that prefix are the sandbox's own`,
      );
    }
    const kind = reader.u8();
    reader.skipLeb();
    if (kind === EXPORT_FUNCTION) {
      this.#functionExports.push(name);
    } else if (kind === EXPORT_GLOBAL) {
      this.#globalExports.push(name);
    }
  }

  /**
   * The initial memory, checked to contain the active data segments: the rewritten memory may be larger, so V8 would no
   * longer reject a segment beyond the end. OPA modules import a memory that can be smaller than their segments; there,
   * the segments extend it, as a host with a larger memory would.
   */
  #extendToData(memory: Limits): Limits {
    const end = this.#dataEnd();
    if (end <= memory.min * PAGE_BYTES) {
      return memory;
    }
    if (!this.#isMemoryImported) {
      throw new WasmError(
        'module-invalid',
        `a data segment lies outside of the module's memory: expected an end of at most ${memory.min * PAGE_BYTES}, ` +
          `got ${end}`,
      );
    }
    return { ...memory, min: Math.ceil(end / PAGE_BYTES) };
  }

  /** End of the active data segments in bytes. */
  #dataEnd(): number {
    const reader = this.#read(SectionId.data);
    let end = 0;
    if (reader === undefined) {
      return end;
    }
    for (let count = reader.u32(); count > 0; count--) {
      const flags = reader.u32();
      if (flags === 2) {
        reader.u32();
      }
      const isActive = flags !== 1;
      const offset = isActive ? this.#readConstant(reader) : 0;
      const length = reader.u32();
      reader.skip(length);
      if (offset === undefined) {
        throw unsupported('a data segment at a computed address');
      }
      end = isActive ? Math.max(end, (offset >>> 0) + length) : end;
    }
    return end;
  }

  // ---- Writing -----------------------------------------------------------------------------------------------------

  /** Writes the code section function by function, so that no second copy of it is in memory. */
  #writeCode(
    out: BinaryWriter,
    functions: number,
    env: CodeEnvironment,
    helpers: readonly Uint8Array[],
  ): Obstacle | undefined {
    const reader = this.#read(SectionId.code);
    const count = reader?.u32() ?? 0;
    if (count !== functions) {
      throw new WasmError('module-invalid', `expected ${functions} function bodies, got ${count}`);
    }
    out.op(SectionId.code);
    const size = out.reserveSize();
    out.u32(count + helpers.length);
    if (reader !== undefined) {
      const obstacle = this.#writeFunctions(out, reader, count, env);
      if (obstacle !== undefined) {
        return obstacle;
      }
    }
    for (const body of helpers) {
      out.sized(body);
    }
    out.setSize(size);
    return undefined;
  }

  #writeFunctions(out: BinaryWriter, reader: BinaryReader, count: number, env: CodeEnvironment): Obstacle | undefined {
    const rewriter = new FunctionRewriter(env);
    for (let index = env.importedFunctions; index < env.importedFunctions + count; index++) {
      const size = reader.u32();
      const from = reader.pos;
      reader.skip(size);
      checkSize(this.#bytes, index, size);
      this.#readTo = reader.pos;
      const body = this.#rewriteFunction(rewriter, new BinaryReader(this.#bytes, from, reader.pos), index);
      if (typeof body === 'string') {
        return body;
      }
      const { cost } = rewriter;
      this.#largestCosts = largestOf(this.#largestCosts, cost);
      const doubt = checkFunction(this.#bytes, index, cost);
      if (doubt !== undefined) {
        this.#doubtful.add(index - env.importedFunctions);
        this.#doubt ??= doubt;
      }
      checkCount('locals of all functions together', rewriter.declaredLocals, MAX_DECLARED_LOCALS);
      out.sized(body);
    }
    return undefined;
  }

  #rewriteFunction(rewriter: FunctionRewriter, body: BinaryReader, index: number): Uint8Array | Obstacle {
    const type = this.#functionTypes[index] ?? 0;
    try {
      return rewriter.rewrite(body, this.#typeParams[type] ?? 0, this.#typeResults[type] ?? 0);
    } catch (error) {
      // V8 validates a malformed function up to its error.
      checkFunction(this.#bytes, index, rewriter.cost);
      throw error;
    }
  }

  #tracking(limitPages: number): TrackingEnvironment {
    const pagesGlobal = this.#globals.length + 1;
    const snapshotBytesGlobal = pagesGlobal + 1;
    const touchedGlobal = snapshotBytesGlobal + 1;
    let saved = touchedGlobal + 1;
    const savedGlobals = [{ live: pagesGlobal, saved: saved++, isNeverNull: false }];
    this.#globals.forEach(({ mutable, type }, live) => {
      if (mutable) {
        savedGlobals.push({ live, saved: saved++, isNeverNull: type[0] === ValueType.ref });
      }
    });
    return {
      cardMemory: 1,
      cardCount: cardCount(limitPages),
      limitPages,
      limitBytes: limitPages * PAGE_BYTES,
      pagesGlobal,
      snapshotBytesGlobal,
      touchedGlobal,
      savedGlobals,
    };
  }

  /** The guest's memory and, with tracking, the memory of the cards and the snapshot. */
  #memories(memory: Limits, pages: number): Uint8Array[] {
    const limits = (min: number, max: number): Uint8Array => new BinaryWriter().op(1).u32(min).u32(max).written;
    if (!this.#tracked) {
      return [limits(memory.min, pages)];
    }
    // Allocated at full size: growth only changes a counter, so it can be undone. Untouched pages use no physical
    // memory.
    return [limits(pages, pages), limits(TRACKING_PAGES, TRACKING_PAGES + pages)];
  }

  /**
   * The fuel global and, with tracking, the globals for the page count, the snapshot's length, the written granules and the
   * saved globals.
   */
  #newGlobals(tracking: TrackingEnvironment | undefined, minPages: number): Uint8Array[] {
    const mutable = 1;
    const { i32, i64 } = ValueType;
    const fuel = new BinaryWriter().op(i64, mutable, Op.i64Const).s64(INIT_FUEL).op(Op.end).written;
    if (tracking === undefined) {
      return [fuel];
    }
    const pages = new BinaryWriter().op(i32, mutable, Op.i32Const).s32(minPages).op(Op.end).written;
    const saved = tracking.savedGlobals.map(({ live }) => {
      const type = nullable(this.#globals[live]?.type ?? Uint8Array.of(i32));
      return new BinaryWriter().bytes(type).op(mutable).bytes(zeroOf(type)).written;
    });
    const count = new BinaryWriter().op(i32, mutable).bytes(zeroOf(Uint8Array.of(i32))).written;
    return [fuel, pages, count, count, ...saved];
  }

  #newExports(added: {
    fuelGlobal: number;
    tracking: TrackingEnvironment | undefined;
    start: number | undefined;
    snapshot: number;
    restore: number;
    hasMemory: boolean;
  }): Uint8Array[] {
    const entry = (name: string, kind: number, index: number): Uint8Array =>
      new BinaryWriter().name(name).op(kind).u32(index).written;
    const exports = [entry(PrivateExport.fuel, EXPORT_GLOBAL, added.fuelGlobal)];
    if (added.hasMemory) {
      exports.push(entry(PrivateExport.memory, EXPORT_MEMORY, 0));
    }
    if (added.start !== undefined) {
      exports.push(entry(PrivateExport.start, EXPORT_FUNCTION, added.start));
    }
    if (added.tracking !== undefined) {
      exports.push(
        entry(PrivateExport.cards, EXPORT_MEMORY, added.tracking.cardMemory),
        entry(PrivateExport.pages, EXPORT_GLOBAL, added.tracking.pagesGlobal),
        entry(PrivateExport.touched, EXPORT_GLOBAL, added.tracking.touchedGlobal),
        entry(PrivateExport.snapshot, EXPORT_FUNCTION, added.snapshot),
        entry(PrivateExport.restore, EXPORT_FUNCTION, added.restore),
      );
    }
    return exports;
  }
}

/** Entries of a section without their count. */
interface Entries {
  readonly count: number;
  readonly bytes: Uint8Array;
}

const NO_ENTRIES: Entries = { count: 0, bytes: new Uint8Array(0) };

/** A section's content: the present entries and then the added ones. */
function appendEntries(present: Entries, added: readonly Uint8Array[]): Uint8Array {
  const writer = new BinaryWriter(present.bytes.length + 1024).u32(present.count + added.length).bytes(present.bytes);
  for (const entry of added) {
    writer.bytes(entry);
  }
  return writer.written;
}

function writeSection(out: BinaryWriter, id: number, content: Uint8Array | undefined): void {
  if (content !== undefined) {
    out.op(id).sized(content);
  }
}

function readMemoryLimits(reader: BinaryReader): Limits {
  const flags = reader.u8();
  if ((flags & 2) !== 0) {
    throw unsupported(Feature.threads);
  }
  if ((flags & 8) !== 0) {
    throw unsupported(Proposal.customPageSizes);
  }
  if ((flags & 4) !== 0) {
    throw unsupported(Feature.memory64);
  }
  if (flags > 1) {
    throw unsupported(`memory with the flags ${flags}`);
  }
  return { min: reader.u32(), max: flags === 1 ? reader.u32() : undefined };
}

function constantResult(opcode: number, left: number, right: number): number | undefined {
  switch (opcode) {
    case Op.i32Add:
      return (left + right) | 0;
    case Op.i32Sub:
      return (left - right) | 0;
    case Op.i32Mul:
      return Math.imul(left, right);
    default:
      return undefined;
  }
}
