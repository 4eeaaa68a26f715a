import type { Library } from '../model/library.ts';
import { BYTES, STRING } from '../model/type.ts';
import type { CelResult } from '../model/value.ts';
import { describe, fail, global } from './declare.ts';

/** cel-go's encoders, which API servers do not support. */
export const ENCODER_EXTENSIONS: Library = {
  name: 'Encoders',
  since: undefined,
  functions: [
    describe(
      'base64.encode',
      'The bytes, encoded as base64.',
      ["base64.encode(b'hello')", "'aGVsbG8='"],
      [global('base64_encode_bytes', [BYTES], STRING, (bytes: Uint8Array) => Buffer.from(bytes).toString('base64'))],
    ),
    describe(
      'base64.decode',
      'The bytes of a base64 string, with or without padding.',
      ["base64.decode('aGVsbG8')", "b'hello'"],
      [global('base64_decode_string', [STRING], BYTES, decode)],
    ),
  ],
};

/** Line breaks are skipped; padding must be complete or absent. */
function decode(text: string): CelResult {
  const compact = text.replace(/[\r\n]/g, '');
  const [, digits = ''] = /^([A-Za-z0-9+/]*)/.exec(compact) ?? [];
  const padding = compact.slice(digits.length);
  const isComplete = padding === '=='.slice(0, (4 - (digits.length % 4)) % 4);
  if (digits.length % 4 === 1 || (padding !== '' && !isComplete)) {
    return fail(`illegal base64 data at input byte ${Buffer.byteLength(text.slice(0, mistakeAt(text)), 'utf8')}`);
  }
  return new Uint8Array(Buffer.from(digits, 'base64'));
}

function mistakeAt(text: string): number {
  const at = text.search(/[^A-Za-z0-9+/\r\n]/);
  return at < 0 ? text.length - 1 : at;
}
