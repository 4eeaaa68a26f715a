import { ModuleError } from './errors.ts';

/** `\0asm` and version 1, the first bytes of every WebAssembly core module. */
export const MODULE_PREAMBLE: readonly number[] = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/** Bytes at the beginning of a download that are inspected to name its type. */
export const SNIFF_BYTES = 512;

/**
 * Checks the first bytes of a module.
 * @param head the first `SNIFF_BYTES`, or all bytes
 * @param contentType for the message
 * @throws ModuleError `not-wasm`
 */
export function assertModulePreamble(head: Uint8Array, shown: string, contentType?: string): void {
  if (MODULE_PREAMBLE.every((byte, index) => head[index] === byte)) {
    return;
  }
  const declared = contentType === undefined ? '' : ` (Content-Type ${JSON.stringify(contentType.slice(0, 100))})`;
  throw new ModuleError(
    'not-wasm',
    `${shown} is not a WebAssembly module: expected bytes that begin with "\\0asm", got ${describe(head)}${declared}`,
    { tenantMessage: `${shown} is not a WebAssembly module: check the URL` },
  );
}

/** Content that is often served in place of a module, by its first bytes. */
const KNOWN: readonly { readonly start: readonly number[] | RegExp; readonly what: string }[] = [
  {
    start: [0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00],
    what: 'a WebAssembly component: build a core module instead (target wasm32-wasip1, not wasm32-wasip2)',
  },
  {
    start: /^\s*<(!doctype html|html|head|body)/i,
    what: 'an HTML page: is it a login or download page? Use the address of the file itself',
  },
  { start: /^\s*<\?xml|^\s*<[a-z]/i, what: 'an XML document' },
  { start: /^version https:\/\/git-lfs/, what: 'a Git LFS pointer: fetch the file behind it ("git lfs pull")' },
  { start: /^\s*\{[^]{0,200}"(schemaVersion|mediaType)"/, what: 'an OCI manifest: name the module itself' },
  { start: /^\s*[[{]/, what: 'JSON text' },
  { start: /^\(module/, what: 'WebAssembly text: assemble it first ("wat2wasm")' },
  { start: [0x1f, 0x8b], what: 'a gzip archive: an OPA bundle? Unpack it ("tar xzf bundle.tar.gz /policy.wasm")' },
  { start: [0x50, 0x4b, 0x03, 0x04], what: 'a zip archive: unpack it' },
  { start: [0x28, 0xb5, 0x2f, 0xfd], what: 'a zstd archive: unpack it' },
  { start: [0x7f, 0x45, 0x4c, 0x46], what: 'a native program (ELF): compile for WebAssembly' },
];

function describe(head: Uint8Array): string {
  if (head.length === 0) {
    return 'nothing (0 bytes)';
  }
  const text = Buffer.from(head).toString('latin1');
  const known = KNOWN.find(({ start }) =>
    start instanceof RegExp ? start.test(text) : start.every((byte, index) => head[index] === byte),
  );
  if (known !== undefined) {
    return known.what;
  }
  if (head.length < MODULE_PREAMBLE.length && head.every((byte, index) => byte === MODULE_PREAMBLE[index])) {
    return `only the first ${head.length} bytes of one`;
  }
  if (MODULE_PREAMBLE.slice(0, 4).every((byte, index) => head[index] === byte)) {
    return 'a WebAssembly binary of a version other than 1';
  }
  return /^[\t\n\r\x20-\x7e]*$/.test(text)
    ? 'plain text'
    : `bytes that begin with ${Buffer.from(head.subarray(0, 4)).toString('hex')}`;
}
