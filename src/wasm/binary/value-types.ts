import type { BinaryReader } from './binary-reader.ts';
import { Feature, Proposal, unsupported } from './features.ts';
import { ValueType } from './opcodes.ts';

// The encodings of value types, heap types and block types:
// https://webassembly.github.io/spec/core/binary/types.html

/** Heap types besides those of the module, which have an index. All types of the module are function types. */
const HeapType = { func: 0x70, extern: 0x6f, nofunc: 0x73, noextern: 0x72, exn: 0x69, noexn: 0x74 } as const;
const EXACT = 0x62;
const SHARED = 0x65;
const HEAP_TYPES: ReadonlySet<number> = new Set([HeapType.func, HeapType.extern, HeapType.nofunc, HeapType.noextern]);

/** The first byte of a block type without parameters and results. */
const EMPTY_BLOCK = 0x40;

/** A block has the parameters and results of a function type, or at most one result. */
export interface BlockType {
  /** Index of the function type; undefined: no parameters, and `results`. */
  readonly type: number | undefined;
  readonly results: number;
}

const NO_RESULT: BlockType = { type: undefined, results: 0 };
const ONE_RESULT: BlockType = { type: undefined, results: 1 };

/**
 * Reads a value type and returns its first byte, which tells all types but typed references apart.
 * @throws WasmError `feature-unsupported` unless it is of a supported feature
 */
export function readValueType(reader: BinaryReader): number {
  const type = reader.u8();
  if (type >= ValueType.v128 && type <= ValueType.i32) {
    return type;
  }
  if (type === ValueType.ref || type === ValueType.refNull) {
    readHeapType(reader);
    return type;
  }
  return checkHeapType(type, `value type 0x${type.toString(16)}`);
}

/** Reads a type of references, as {@link readValueType}. */
export function readReferenceType(reader: BinaryReader): number {
  const type = readValueType(reader);
  if (type >= ValueType.v128) {
    throw unsupported(`a table of type 0x${type.toString(16)}`);
  }
  return type;
}

/** @throws WasmError `feature-unsupported` unless it is a heap type of a supported feature */
export function readHeapType(reader: BinaryReader): void {
  const type = reader.s33();
  if (type < 0) {
    checkHeapType(type & 0x7f, `heap type 0x${(type & 0x7f).toString(16)}`);
  }
}

function checkHeapType(type: number, shown: string): number {
  if (HEAP_TYPES.has(type)) {
    return type;
  }
  throw unsupported(featureOfHeapType(type) ?? shown);
}

function featureOfHeapType(type: number): string | undefined {
  switch (type) {
    case HeapType.exn:
    case HeapType.noexn:
      return Feature.exceptions;
    case EXACT:
      return Proposal.customDescriptors;
    case SHARED:
      return Proposal.sharedEverything;
    case 0x68:
    case 0x75:
      return Proposal.stackSwitching;
    case 0x67:
    case 0x66:
      return Proposal.strings;
    default:
      return type >= 0x6a && type <= 0x71 ? Feature.garbageCollection : undefined;
  }
}

/** @throws WasmError `feature-unsupported` if its result is of an unsupported feature */
export function readBlockType(reader: BinaryReader): BlockType {
  const first = reader.peek();
  if (first === EMPTY_BLOCK) {
    reader.skip(1);
    return NO_RESULT;
  }
  if (first > EMPTY_BLOCK && first < 0x80) {
    readValueType(reader);
    return ONE_RESULT;
  }
  return { type: reader.s33(), results: 0 };
}

/** The type of nullable references that has all values of a value type; other types are unchanged. Encoded. */
export function nullable(type: Uint8Array): Uint8Array {
  return type[0] === ValueType.ref ? Uint8Array.of(ValueType.refNull, ...type.subarray(1)) : type;
}

/** The heap type of a type of references. Encoded. */
export function heapTypeOf(type: Uint8Array): Uint8Array {
  return type[0] === ValueType.ref || type[0] === ValueType.refNull ? type.subarray(1) : type;
}
