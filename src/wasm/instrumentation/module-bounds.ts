import { BinaryReader } from '../binary/binary-reader.ts';
import { WasmError } from '../binary/errors.ts';

// What compiling a module may cost. The figures of published modules, and what compilers need at the bounds, are in
// docs/adr/0028-modules-are-bounded-before-they-are-compiled.md.

/** What one function costs V8's compilers. */
export interface FunctionCost {
  /** Size of the body. */
  readonly bodyBytes: number;
  /** Its optimizing compiler takes time in proportion to the square of the loops. */
  readonly loops: number;
  /**
   * Values of locals and operands at labels (blocks, arms of an `if`, branches), added up over all labels. Both compilers
   * keep a copy of each value, the baseline compiler in 12 bytes.
   */
  readonly savedValues: number;
  /** Parameters and results of calls, blocks, branches and returns, added up over all of them. Compilers keep or move each value. */
  readonly passedValues: number;
}

/** The costs of no function. */
export const NO_COST: FunctionCost = { bodyBytes: 0, loops: 0, savedValues: 0, passedValues: 0 };

/** The larger of each cost. */
export function largestOf(one: FunctionCost, other: FunctionCost): FunctionCost {
  return {
    bodyBytes: Math.max(one.bodyBytes, other.bodyBytes),
    loops: Math.max(one.loops, other.loops),
    savedValues: Math.max(one.savedValues, other.savedValues),
    passedValues: Math.max(one.passedValues, other.passedValues),
  };
}

interface Bound {
  readonly what: string;
  /** Above this, the module is tried in a process of its own first. */
  readonly usual: number;
  /** Above this, the module is refused. */
  readonly max: number;
  /** What the author can do. */
  readonly remedy: string;
}

/**
 * Size of a function's body. Those of published policies have up to 192 KB. The optimizing compiler needs up to 5 KB of memory
 * for each byte of some code.
 */
const MAX_FUNCTION_BYTES = 1024 * 1024;
/** What policies have usually. */
export const USUAL_FUNCTION_BYTES = 128 * 1024;

/** Loops of a function. Published ones have up to 190. The optimizing compiler takes 0.6 s for 4,000 and 8 s for 16,000. */
const MAX_LOOPS = 8_000;
const USUAL_LOOPS = 2_000;

/**
 * See FunctionCost. A function of a Rust policy saves 3 million values, and 8 million after wasm-opt. 14 million take 160 of the
 * 256 MiB of a trial.
 */
const MAX_SAVED_VALUES = 14_000_000;
const USUAL_SAVED_VALUES = 4_000_000;

/**
 * See FunctionCost. Code pushes each operand with an instruction and uses each result with another, so it passes at most one value
 * with each byte, unless results of one call are the parameters of the next, or the code is never reached.
 */
const MAX_PASSED_PER_BYTE = 16;
/** Those of a call with the most parameters and results that V8 accepts, so that small functions may have one. */
const PASSED_BY_A_CALL = 2_000;
/** 40 bytes of memory each, and 1 µs in calls with a thousand parameters. */
const MAX_PASSED_VALUES = 1_000_000;

const FUNCTION_BYTES: Bound = {
  what: 'bytes of code',
  usual: USUAL_FUNCTION_BYTES,
  max: MAX_FUNCTION_BYTES,
  remedy: 'split the function, or build with optimization for size',
};
const LOOPS: Bound = { what: 'loops', usual: USUAL_LOOPS, max: MAX_LOOPS, remedy: 'split the function' };
const SAVED_VALUES: Bound = {
  what: 'values of locals and operands at labels',
  usual: USUAL_SAVED_VALUES,
  max: MAX_SAVED_VALUES,
  remedy: 'split the function (in Rego: give rules of one name several names), or build with optimization',
};

/** Function types. V8 keeps each for the life of the process. Published modules have up to 240. */
export const MAX_TYPES = 10_000;

/** Parameters and results of all function types together, which V8 keeps with them. Kubernetes' CEL in Go has 2,810. */
export const MAX_TYPE_VALUES = 100_000;

/** Globals: each mutable one is saved and restored. Published modules have up to 8. */
export const MAX_GLOBALS = 10_000;

/**
 * Locals of all functions together, which code declares in a few bytes, and V8 writes down whenever it validates a function: 0.6 ns
 * each, 2 ns for references. Kubernetes' CEL in Go declares 73,288.
 */
export const MAX_DECLARED_LOCALS = 10_000_000;

/** Characters of a name in a message. */
const MAX_SHOWN_NAME = 100;
const BYTES_PER_CHARACTER = 4;

const CUSTOM_SECTION = 0;
const FUNCTION_NAMES = 1;
const HEADER_BYTES = 8;

/**
 * Checks the size of a function before it is read.
 * @param index among all functions of the module, imported ones first
 * @throws WasmError `module-too-costly`
 */
export function checkSize(bytes: Uint8Array, index: number, size: number): void {
  checkBound(bytes, index, FUNCTION_BYTES, size);
}

/** @throws WasmError `module-too-costly` */
export function checkCount(what: string, count: number, max: number): void {
  if (count > max) {
    throw new WasmError('module-too-costly', `the module has too many ${what}: expected at most ${max}, got ${count}`);
  }
}

/**
 * Checks what a function costs a compiler.
 * @param index among all functions of the module, imported ones first
 * @returns why the module is to be tried in a process of its own, or undefined
 * @throws WasmError `module-too-costly`
 */
export function checkFunction(bytes: Uint8Array, index: number, cost: FunctionCost): string | undefined {
  // All of them, because one that is only doubtful must not hide one that is too much.
  const doubts = [
    checkBound(bytes, index, passedValuesOf(cost.bodyBytes), cost.passedValues),
    checkBound(bytes, index, FUNCTION_BYTES, cost.bodyBytes),
    checkBound(bytes, index, LOOPS, cost.loops),
    checkBound(bytes, index, SAVED_VALUES, cost.savedValues),
  ];
  return doubts.find((doubt) => doubt !== undefined);
}

function passedValuesOf(bodyBytes: number): Bound {
  const max = Math.min(MAX_PASSED_VALUES, PASSED_BY_A_CALL + MAX_PASSED_PER_BYTE * bodyBytes);
  return {
    what: 'parameters and results of calls, blocks, branches and returns',
    usual: max,
    max,
    remedy: 'split the function',
  };
}

function sectionReader(reader: BinaryReader): BinaryReader {
  const size = reader.u32();
  const from = reader.pos;
  reader.skip(size);
  return new BinaryReader(reader.bytes, from, reader.pos);
}

function checkBound(bytes: Uint8Array, index: number, bound: Bound, figure: number): string | undefined {
  if (figure <= bound.usual) {
    return undefined;
  }
  const shown = `function ${index}${nameOf(bytes, index)} has ${figure} ${bound.what}`;
  if (figure > bound.max) {
    throw new WasmError(
      'module-too-costly',
      `${shown}: expected at most ${bound.max}, because compiling more takes too much memory or time; ${bound.remedy}`,
    );
  }
  return `${shown}, where ${bound.usual} are usual; ${bound.remedy}`;
}

/** The function's name in the name section, quoted for a message; empty if there is none. */
function nameOf(bytes: Uint8Array, index: number): string {
  try {
    const name = nameInSection(bytes, index);
    return name === undefined ? '' : ` ${JSON.stringify(name.slice(0, MAX_SHOWN_NAME))}`;
  } catch {
    // V8 ignores a malformed name section, too.
    return '';
  }
}

function nameInSection(bytes: Uint8Array, index: number): string | undefined {
  const reader = new BinaryReader(bytes, HEADER_BYTES);
  while (!reader.isAtEnd) {
    const id = reader.u8();
    const section = sectionReader(reader);
    if (id !== CUSTOM_SECTION || section.name() !== 'name') {
      continue;
    }
    while (!section.isAtEnd) {
      const kind = section.u8();
      const names = sectionReader(section);
      if (kind === FUNCTION_NAMES) {
        return nameInMap(names, index);
      }
    }
  }
  return undefined;
}

function nameInMap(names: BinaryReader, index: number): string | undefined {
  for (let count = names.u32(); count > 0; count--) {
    const named = names.u32();
    const text = names.slice(names.u32());
    if (named === index) {
      return new TextDecoder().decode(text.subarray(0, MAX_SHOWN_NAME * BYTES_PER_CHARACTER));
    }
  }
  return undefined;
}
