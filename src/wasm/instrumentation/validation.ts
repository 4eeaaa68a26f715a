import { errorText } from '../../values/index.ts';
import { BinaryReader } from '../binary/binary-reader.ts';
import { WasmError } from '../binary/errors.ts';
import { UnsupportedFeature } from '../binary/features.ts';
import { Op } from '../binary/opcodes.ts';
import { SectionId } from '../binary/section-id.ts';

const HEADER_BYTES = 8;
/** The shortest body without results: no locals, and the end. */
const EMPTY_BODY_BYTES = 2;

/**
 * Has V8 validate a module.
 * @throws WasmError `module-invalid` with V8's reason
 */
export function validate(bytes: Uint8Array): void {
  if (WebAssembly.validate(bytes)) {
    return;
  }
  throw new WasmError(
    'module-invalid',
    `not a valid WebAssembly module (${reasonOf(bytes)}): it is damaged, truncated, of a newer version, or of a draft that was ` +
      'changed; expected a core module of version 1',
  );
}

/** Why V8 does not accept an invalid module. */
function reasonOf(bytes: Uint8Array): string {
  try {
    void new WebAssembly.Module(bytes);
    return 'no reason';
  } catch (error) {
    return errorText(error);
  }
}

/**
 * Has V8 look for another reason for an error: the bytes of an invalid module may look like anything. V8 sees only the bodies of
 * functions that were read, because only those are known to be within the bounds that make its validation fast.
 * @param readTo position up to which bodies were read
 * @throws WasmError `module-invalid` with V8's reason
 */
export function validateRead(bytes: Uint8Array, readTo: number, error: unknown): void {
  if (isDoubtful(error)) {
    validate(withoutBodies(bytes, readTo));
  }
}

function isDoubtful(error: unknown): boolean {
  return error instanceof UnsupportedFeature
    ? !error.isProposal
    : error instanceof WasmError && error.code === 'module-invalid';
}

/** A copy whose bodies from this position on do nothing. Positions are the same, because V8 names them in its reasons. */
function withoutBodies(bytes: Uint8Array, from: number): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes);
  try {
    clearBodies(copy, from);
  } catch {
    // V8 finds the same sections and bodies malformed, and validates no function then.
  }
  return copy;
}

/** @throws WasmError `module-invalid` */
function clearBodies(bytes: Uint8Array, from: number): void {
  const reader = new BinaryReader(bytes, HEADER_BYTES);
  while (!reader.isAtEnd) {
    const id = reader.u8();
    const content = reader.slice(reader.u32());
    if (id === SectionId.code) {
      const bodies = new BinaryReader(content);
      for (let count = bodies.u32(); count > 0; count--) {
        const body = bodies.slice(bodies.u32());
        if (body.byteOffset - bytes.byteOffset >= from && body.length > EMPTY_BODY_BYTES) {
          body.fill(Op.nop).set([0, Op.unreachable]);
          body[body.length - 1] = Op.end;
        }
      }
    }
  }
}
