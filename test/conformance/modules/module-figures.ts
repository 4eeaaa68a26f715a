// What a module contains, as its binary format says it.
import { BinaryReader } from '../../../src/wasm/binary/binary-reader.ts';

/** Figures that the bounds of modules are derived from. */
export interface ModuleFigures {
  readonly bytes: number;
  /** Function types. */
  readonly types: number;
  /** Function types with a typed function reference. */
  readonly typedTypes: number;
  readonly functions: number;
  readonly largestFunction: number;
  readonly parameters: number;
  readonly results: number;
  readonly locals: number;
  readonly globals: number;
}

const HEADER_BYTES = 8;
const TYPE = 1;
const GLOBAL = 6;
const CODE = 10;
const FUNCTION = 0x60;
/** Forms around a function type, of modules with subtypes and recursive groups. */
const [GROUP, SUBTYPE, FINAL_SUBTYPE] = [0x4e, 0x50, 0x4f];
/** A reference to a heap type, which follows: not null, or null. */
const REFERENCES: readonly number[] = [0x64, 0x63];
const NAMED_HEAP_TYPES = 0x40;

/** @throws WasmError `module-invalid` */
export function moduleFigures(bytes: Uint8Array): ModuleFigures {
  const reader = new BinaryReader(bytes, HEADER_BYTES);
  let types: FunctionTypes = { types: 0, typedTypes: 0, parameters: 0, results: 0 };
  let code: Bodies = { functions: 0, largestFunction: 0, locals: 0 };
  let globals = 0;
  while (!reader.isAtEnd) {
    const id = reader.u8();
    const size = reader.u32();
    const section = new BinaryReader(bytes, reader.pos, reader.pos + size);
    reader.skip(size);
    if (id === TYPE) {
      types = readTypes(section);
    } else if (id === GLOBAL) {
      globals = section.u32();
    } else if (id === CODE) {
      code = readBodies(section);
    }
  }
  return { bytes: bytes.length, ...types, ...code, globals };
}

type FunctionTypes = Pick<ModuleFigures, 'types' | 'typedTypes' | 'parameters' | 'results'>;

function readTypes(section: BinaryReader): FunctionTypes {
  const figures = { types: 0, typedTypes: 0, parameters: 0, results: 0 };
  for (let left = section.u32(); left > 0; left--) {
    let form = section.u8();
    if (form === GROUP) {
      left += section.u32();
      continue;
    }
    if (form === SUBTYPE || form === FINAL_SUBTYPE) {
      for (let parents = section.u32(); parents > 0; parents--) {
        section.skipLeb();
      }
      form = section.u8();
    }
    if (form !== FUNCTION) {
      // What follows is a struct or an array, which ends what can be counted.
      break;
    }
    const parameters = readValueTypes(section);
    const results = readValueTypes(section);
    figures.types += 1;
    figures.typedTypes += parameters.typed + results.typed > 0 ? 1 : 0;
    figures.parameters = Math.max(figures.parameters, parameters.count);
    figures.results = Math.max(figures.results, results.count);
  }
  return figures;
}

function readValueTypes(section: BinaryReader): { readonly count: number; readonly typed: number } {
  const count = section.u32();
  let typed = 0;
  for (let index = 0; index < count; index++) {
    if (REFERENCES.includes(section.u8())) {
      // Heap types with a number are defined in the module; the others are one byte with a set bit 6.
      const first = section.bytes[section.pos] ?? 0;
      typed += first < NAMED_HEAP_TYPES || first >= 0x80 ? 1 : 0;
      section.skipLeb();
    }
  }
  return { count, typed };
}

type Bodies = Pick<ModuleFigures, 'functions' | 'largestFunction' | 'locals'>;

function readBodies(section: BinaryReader): Bodies {
  const functions = section.u32();
  let largestFunction = 0;
  let locals = 0;
  for (let index = 0; index < functions; index++) {
    const size = section.u32();
    const body = new BinaryReader(section.bytes, section.pos, section.pos + size);
    section.skip(size);
    largestFunction = Math.max(largestFunction, size);
    locals = Math.max(locals, countLocals(body));
  }
  return { functions, largestFunction, locals };
}

function countLocals(body: BinaryReader): number {
  let locals = 0;
  for (let groups = body.u32(); groups > 0; groups--) {
    locals += body.u32();
    if (REFERENCES.includes(body.u8())) {
      body.skipLeb();
    }
  }
  return locals;
}
