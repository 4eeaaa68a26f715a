import { ModuleError } from '../reference/errors.ts';
import { MODULE_PREAMBLE } from '../reference/wasm-bytes.ts';

/** https://webassembly.github.io/spec/core/binary/modules.html#custom-section */
interface CustomSection {
  readonly name: string;
  /** A view of the module's bytes. */
  readonly content: Uint8Array;
}

/** Byte offsets of one section. */
interface Section {
  readonly id: number;
  readonly start: number;
  readonly contentStart: number;
  readonly end: number;
}

const CUSTOM_SECTION_ID = 0;
const MAX_LEB32_BYTES = 5;

/**
 * The contents of all custom sections of a name, as views of the module.
 * @throws ModuleError `not-wasm` when the bytes are not a complete module
 */
export function customSections(module: Uint8Array, name: string): Uint8Array[] {
  return [...sections(module)].flatMap((section) => {
    const custom = customSection(module, section);
    return custom?.name === name ? [custom.content] : [];
  });
}

/**
 * A copy of the module with one custom section of this name, at its end.
 * @throws ModuleError `not-wasm`
 */
export function withCustomSection(module: Uint8Array, name: string, content: Uint8Array): Uint8Array {
  const kept = [...sections(module)].filter((section) => customSection(module, section)?.name !== name);
  const nameBytes = new TextEncoder().encode(name);
  const payload = Buffer.concat([leb32(nameBytes.length), nameBytes, content]);
  return new Uint8Array(
    Buffer.concat([
      Uint8Array.from(MODULE_PREAMBLE),
      ...kept.map(({ start, end }) => module.subarray(start, end)),
      Uint8Array.of(CUSTOM_SECTION_ID),
      leb32(payload.length),
      payload,
    ]),
  );
}

function* sections(module: Uint8Array): Generator<Section> {
  if (!MODULE_PREAMBLE.every((byte, index) => module[index] === byte)) {
    throw new ModuleError(
      'not-wasm',
      'not a WebAssembly module: expected bytes that begin with "\\0asm" and version 1',
    );
  }
  let at = MODULE_PREAMBLE.length;
  while (at < module.length) {
    const { value: size, next } = readLeb32(module, at + 1, module.length);
    const end = next + size;
    if (end > module.length) {
      throw new ModuleError(
        'not-wasm',
        `the module is truncated: expected a section of ${size} bytes at ${next}, got ${module.length - next}`,
      );
    }
    yield { id: module[at] ?? 0, start: at, contentStart: next, end };
    at = end;
  }
}

function customSection(module: Uint8Array, { id, contentStart, end }: Section): CustomSection | undefined {
  if (id !== CUSTOM_SECTION_ID) {
    return undefined;
  }
  const { value: length, next } = readLeb32(module, contentStart, end);
  if (next + length > end) {
    throw new ModuleError(
      'not-wasm',
      `the module is corrupt: the name of the custom section at byte ${contentStart} is truncated`,
    );
  }
  return {
    name: new TextDecoder().decode(module.subarray(next, next + length)),
    content: module.subarray(next + length, end),
  };
}

/** Reads an unsigned LEB128 number of at most 32 bits that ends before `limit`. */
function readLeb32(bytes: Uint8Array, at: number, limit: number): { value: number; next: number } {
  let value = 0;
  for (let index = 0; index < MAX_LEB32_BYTES && at + index < limit; index++) {
    const byte = bytes[at + index] ?? 0;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) {
      return { value, next: at + index + 1 };
    }
  }
  throw new ModuleError('not-wasm', `the module is corrupt: expected a LEB128 number at byte ${at}`);
}

function leb32(value: number): Uint8Array {
  const bytes = [];
  let rest = value;
  do {
    bytes.push((rest % 128) + (rest >= 128 ? 128 : 0));
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  return Uint8Array.from(bytes);
}
