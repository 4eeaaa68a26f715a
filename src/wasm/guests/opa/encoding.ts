import { compareStrings, queryEscape } from '../../../go/index.ts';
import { objectOperand, stringOperand, undefinedBecause, wrongType } from './builtin.ts';
import type { OpaBuiltin } from './builtin.ts';
import { FUEL_PER_VALUE } from './objects.ts';
import { parseJsonText } from './value-text.ts';
import { isArray, RegoObject, RegoSet } from './value.ts';
import type { RegoValue } from './value.ts';

const hexEncode: OpaBuiltin = (operands) => Buffer.from(stringOperand(operands, 0)).toString('hex');

const hexDecode: OpaBuiltin = (operands) => {
  const text = stringOperand(operands, 0);
  return text.length % 2 === 0 && !/[^0-9a-fA-F]/.test(text)
    ? Buffer.from(text, 'hex').toString()
    : undefinedBecause('not hexadecimal');
};

const base64UrlEncodeNoPad: OpaBuiltin = (operands) => Buffer.from(stringOperand(operands, 0)).toString('base64url');

/** Decodes base64url with or without padding; line breaks are skipped, as in Go. */
function decodeBase64Url(text: string): Buffer {
  const body = text.replace(/[\r\n]/g, '').replace(/={1,2}$/, '');
  const isPadded = text.endsWith('=');
  const clean = text.replace(/[\r\n]/g, '');
  if (!/^[A-Za-z0-9_-]*$/.test(body) || body.length % 4 === 1 || (isPadded && clean.length % 4 !== 0)) {
    undefinedBecause('not base64url');
  }
  return Buffer.from(body, 'base64url');
}

const PERCENT = 0x25;

function queryUnescape(text: string): string {
  if (/%(?![0-9a-fA-F]{2})/.test(text)) {
    undefinedBecause('urlquery: invalid percent escape');
  }
  // Decoded as bytes, because escapes may be invalid UTF-8, which becomes U+FFFD.
  const bytes = Buffer.from(text.replaceAll('+', ' '));
  let length = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    const isEscape = bytes[index] === PERCENT;
    bytes[length] = isEscape
      ? Number.parseInt(bytes.toString('latin1', index + 1, index + 3), 16)
      : (bytes[index] ?? 0);
    length += 1;
    index += isEscape ? 2 : 0;
  }
  return bytes.toString('utf8', 0, length);
}

const queryEncode: OpaBuiltin = (operands) => queryEscape(stringOperand(operands, 0));
const queryDecode: OpaBuiltin = (operands) => queryUnescape(stringOperand(operands, 0));

const queryEncodeObject: OpaBuiltin = (operands) => {
  const pairs = [...objectOperand(operands, 0)].map(([key, value]): [string, readonly string[]] => [
    typeof key === 'string' ? key : wrongType(key, 0, 'string'),
    queryValues(value),
  ]);
  pairs.sort(([a], [b]) => compareStrings(a, b));
  return pairs.flatMap(([key, values]) => values.map((value) => `${queryEscape(key)}=${queryEscape(value)}`)).join('&');
};

function queryValues(value: RegoValue): readonly string[] {
  if (typeof value === 'string') {
    return [value];
  }
  const items =
    value instanceof RegoSet ? value.sorted() : isArray(value) ? value : wrongType(value, 0, 'string', 'array', 'set');
  return items.map((item) => (typeof item === 'string' ? item : wrongType(item, 0, 'string')));
}

const queryDecodeObject: OpaBuiltin = (operands, context) => {
  const values = new Map<string, string[]>();
  const parts = stringOperand(operands, 0)
    .split('&')
    .filter((part) => part !== '');
  context.charge(parts.length * FUEL_PER_VALUE);
  for (const part of parts) {
    if (part.includes(';')) {
      undefinedBecause('urlquery: semicolons do not separate parameters');
    }
    const equals = part.indexOf('=');
    const key = queryUnescape(equals === -1 ? part : part.slice(0, equals));
    const value = queryUnescape(equals === -1 ? '' : part.slice(equals + 1));
    const known = values.get(key);
    if (known === undefined) {
      values.set(key, [value]);
    } else {
      known.push(value);
    }
  }
  return new RegoObject(values);
};

/**
 * Header, payload and signature (in hexadecimal) of a JWT, without verification. For a nested token, the inner one is
 * decoded.
 */
const jwtDecode: OpaBuiltin = (operands) => decodeToken(stringOperand(operands, 0));

function decodeToken(token: string): RegoValue {
  const parts = token.split('.');
  const [headerPart, payloadPart, signaturePart] = parts;
  if (headerPart === undefined || payloadPart === undefined || signaturePart === undefined || parts.length !== 3) {
    undefinedBecause('io.jwt.decode: expected a token with three parts');
  }
  const header = jsonObject(headerPart);
  if (header.get('enc') !== undefined) {
    undefinedBecause('io.jwt.decode: encrypted tokens are not supported');
  }
  const contentType = header.get('cty');
  if (contentType === 'JWT') {
    // A nested token may be a quoted JSON string; tokens themselves contain no quotes.
    return decodeToken(decodeBase64Url(payloadPart).toString().replace(/["']/g, ''));
  }
  return [header, jsonObject(payloadPart), decodeBase64Url(signaturePart).toString('hex')];
}

function jsonObject(base64: string): RegoObject {
  const value = parseJsonText(decodeBase64Url(base64).toString());
  return value instanceof RegoObject ? value : undefinedBecause('io.jwt.decode: expected a JSON object');
}

export const encodingBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['hex.encode', hexEncode],
  ['hex.decode', hexDecode],
  ['base64url.encode_no_pad', base64UrlEncodeNoPad],
  ['urlquery.encode', queryEncode],
  ['urlquery.decode', queryDecode],
  ['urlquery.encode_object', queryEncodeObject],
  ['urlquery.decode_object', queryDecodeObject],
  ['io.jwt.decode', jwtDecode],
];
