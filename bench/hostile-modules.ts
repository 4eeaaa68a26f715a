// Modules that a hostile tenant brings.
import { parseMetadata, writeMetadata } from '../src/modules/index.ts';
import { BinaryWriter } from '../src/wasm/binary/binary-writer.ts';
import { HARMLESS, hostileModule } from '../src/wasm/testing/hostile-module.ts';
import { startingModule } from '../src/wasm/testing/starting-module.ts';
import { wat } from '../src/wasm/testing/wat.ts';

const PAGE_BYTES = 65_536;
const CUSTOM_SECTION = 0;
/** Where answers are. */
const ANSWERS = 1024;

const METADATA = parseMetadata({ protocolVersion: 'v1', executionMode: 'kubewarden-wapc', rules: [] });

interface Guest {
  readonly pages: number;
  /** Instructions of the start function, with the local `$n`. */
  readonly start?: string;
  /** Instructions before a review is accepted, and before settings are, with the length of the payload in `$length`. */
  readonly validate?: string;
  readonly settings?: string;
  /** Makes the module distinct. */
  readonly salt: number;
}

/** A waPC guest that accepts everything. */
function guest({ pages, start = '', validate = '', settings = '', salt }: Guest): Uint8Array {
  const answer = (at: number, length: number): string =>
    `(call $respond (i32.const ${ANSWERS + at}) (i32.const ${length})) (return (i32.const 1))`;
  const bytes = wat(`(module
    (import "wapc" "__guest_response" (func $respond (param i32 i32)))
    (memory (export "memory") ${pages})
    (data (i32.const ${ANSWERS}) "{\\"accepted\\":true}{\\"valid\\":true}\\"v1\\"${salt}")
    (start $start)
    (func $start (local $n i32) ${start})
    (func (export "__guest_call") (param $operation i32) (param $length i32) (result i32) (local $n i32)
      (if (i32.eq (local.get $operation) (i32.const 16)) (then ${answer(31, 4)}))
      (if (i32.eq (local.get $operation) (i32.const 17)) (then ${settings} ${answer(17, 14)}))
      ${validate}
      ${answer(0, 17)}))`);
  return writeMetadata(bytes, METADATA);
}

/** Two thousand pages: as much as the limit of a guest allows. */
const FILLED_PAGES = 2_000;

/** Fills its memory with ones, behind the answers. */
const FILL = `(memory.fill (i32.const ${PAGE_BYTES}) (i32.const 1) (i32.const ${(FILLED_PAGES - 1) * PAGE_BYTES}))`;

/** A start function that fills 125 MiB. */
export const memoryModule = (salt: number): Uint8Array => guest({ pages: FILLED_PAGES, start: FILL, salt });

/** A start function that fills a memory of this size. */
export const smallerMemoryModule = (pages: number, salt: number): Uint8Array =>
  guest({
    pages,
    start: `(memory.fill (i32.const ${PAGE_BYTES}) (i32.const 1) (i32.const ${(pages - 1) * PAGE_BYTES}))`,
    salt,
  });

/** A review fills 125 MiB. */
export const fillingModule = (salt: number): Uint8Array => guest({ pages: FILLED_PAGES, validate: FILL, salt });

/** Most of what the fuel of a start allows: 1.2 s on an idle machine. */
const LONG_START = 800_000;
export const slowStartModule = (salt: number): Uint8Array => writeMetadata(startingModule(LONG_START, salt), METADATA);

const ENDLESS = '(loop $forever (br $forever))';

export const endlessStartModule = (salt: number): Uint8Array => guest({ pages: 2, start: ENDLESS, salt });

export const endlessReviewModule = (salt: number): Uint8Array => guest({ pages: 2, validate: ENDLESS, salt });

/** Validates settings of more than this many bytes without end. */
const SHORT_SETTINGS = 64;
export const endlessSettingsModule = (salt: number): Uint8Array =>
  guest({
    pages: 2,
    settings: `(if (i32.gt_u (local.get $length) (i32.const ${SHORT_SETTINGS})) (then ${ENDLESS}))`,
    salt,
  });

/** A module of 4 KB that makes a compiler save 39 million values. */
export const wideModule = (): Uint8Array =>
  hostileModule({ ...HARMLESS, locals: 49_000, blocks: 'if', nesting: 800, isStarted: true });

/** A module with one function of 13 MB. */
export const longModule = (): Uint8Array => hostileModule({ ...HARMLESS, stores: 1_200_000 });

/** Just within the bounds: nearly 14 million saved values. */
export const justAllowedModule = (salt: number): Uint8Array =>
  withSalt(hostileModule({ ...HARMLESS, locals: 16_000, blocks: 'if', nesting: 400, isStarted: true }), salt);

/** Just within the bounds: a function of a little less than 1 MiB. */
export const longestAllowedModule = (salt: number): Uint8Array =>
  withSalt(hostileModule({ ...HARMLESS, stores: 90_000, isStarted: true }), salt);

/** A distinct module that does the same: a custom section is appended. */
function withSalt(module: Uint8Array, salt: number): Uint8Array {
  const section = new BinaryWriter().name(`salt-${salt}`).written;
  return new BinaryWriter().bytes(module).op(CUSTOM_SECTION).sized(section).written;
}
