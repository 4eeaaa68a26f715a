import type { BinaryReader } from './binary-reader.ts';
import { Feature, Proposal, unsupported } from './features.ts';
import { readValueType } from './value-types.ts';

const Form = { function: 0x60, struct: 0x5f, array: 0x5e, continuation: 0x5d } as const;
const GROUP = 0x4e;
const SUBTYPE = 0x50;
const FINAL_SUBTYPE = 0x4f;
const SHARED = 0x65;
const DESCRIPTOR = 0x4d;
const DESCRIBES = 0x4c;

/**
 * Reads an entry of the type section: a function type, or a group of those, whose types may refer to each other.
 * @param onType called for each type of the module
 * @throws WasmError `feature-unsupported` for types other than those of functions
 */
export function readTypes(reader: BinaryReader, onType: (parameters: number, results: number) => void): void {
  const isGroup = reader.peek() === GROUP;
  let count = 1;
  if (isGroup) {
    reader.skip(1);
    count = reader.u32();
  }
  for (let index = 0; index < count; index++) {
    readType(reader, onType);
  }
}

function readType(reader: BinaryReader, onType: (parameters: number, results: number) => void): void {
  let form = reader.u8();
  if (form === SUBTYPE || form === FINAL_SUBTYPE) {
    for (let supertypes = reader.u32(); supertypes > 0; supertypes--) {
      reader.skipLeb();
    }
    form = reader.u8();
  }
  if (form !== Form.function) {
    throw unsupported(featureOfForm(form));
  }
  onType(readValueTypes(reader), readValueTypes(reader));
}

function readValueTypes(reader: BinaryReader): number {
  const count = reader.u32();
  for (let index = 0; index < count; index++) {
    readValueType(reader);
  }
  return count;
}

function featureOfForm(form: number): string {
  switch (form) {
    case Form.struct:
    case Form.array:
      return Feature.garbageCollection;
    case Form.continuation:
      return Proposal.stackSwitching;
    case SHARED:
      return Proposal.sharedEverything;
    case DESCRIPTOR:
    case DESCRIBES:
      return Proposal.customDescriptors;
    default:
      return `types of the form 0x${form.toString(16)}`;
  }
}
