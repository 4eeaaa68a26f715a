import { quote, quoteBytes, toBinary } from '../../go/index.ts';
import type { CelValue } from '../model/value.ts';
import { LibraryValue } from '../model/library-value.ts';
import { fail } from './declare.ts';
import type { EvaluationFailure } from '../model/value.ts';

/** Length of an address in bits. */
type AddressLength = 32 | 128;

const BITS_PER_BYTE = 8;
/** Number of 16-bit groups in an IPv6 address. */
const GROUPS = 8;
const IPV4_OCTETS = 4;
/** The first 96 bits of an IPv4-mapped IPv6 address. */
const MAPPED_PREFIX = 0xffffn;

/** An IP address without a zone: a value of type `net.IP`. */
export class IpAddress extends LibraryValue {
  readonly typeName = 'net.IP';
  readonly bits: bigint;
  readonly length: AddressLength;

  constructor(bits: bigint, length: AddressLength) {
    super();
    this.bits = bits;
    this.length = length;
  }

  override get costSize(): number {
    return this.length / BITS_PER_BYTE;
  }

  protected override isComparableTo(other: CelValue): boolean {
    return other instanceof IpAddress;
  }

  equals(other: CelValue): boolean {
    return other instanceof IpAddress && other.bits === this.bits && other.length === this.length;
  }

  /** Whether the address starts with these bits. */
  hasPrefix(prefix: bigint, length: number): boolean {
    return this.bits >> BigInt(this.length - length) === prefix;
  }

  get isMapped(): boolean {
    return this.length === 128 && this.bits >> 32n === MAPPED_PREFIX;
  }

  get isUnspecified(): boolean {
    return this.bits === 0n;
  }

  get isLoopback(): boolean {
    return this.length === 32 ? this.hasPrefix(127n, 8) : this.bits === 1n;
  }

  get isLinkLocalMulticast(): boolean {
    return this.length === 32 ? this.hasPrefix(0xe00000n, 24) : ((this.bits >> 112n) & 0xff0fn) === 0xff02n;
  }

  get isLinkLocalUnicast(): boolean {
    return this.length === 32 ? this.hasPrefix(0xa9fen, 16) : this.hasPrefix(0xfe80n >> 6n, 10);
  }

  get isMulticast(): boolean {
    return this.length === 32 ? this.hasPrefix(0xen, 4) : this.hasPrefix(0xffn, 8);
  }

  get isGlobalUnicast(): boolean {
    const isBroadcast = this.length === 32 && this.bits === 0xffffffffn;
    const isSpecial = this.isUnspecified || this.isLoopback || this.isMulticast || this.isLinkLocalUnicast;
    return !isBroadcast && !isSpecial;
  }

  /** The canonical text. */
  override toString(): string {
    return this.length === 32 ? octets(this.bits).join('.') : formatV6(this.bits);
  }
}

function octets(bits: bigint): number[] {
  const value = Number(bits);
  return [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

/** Hexadecimal groups, with `::` for the first of the longest runs of two or more zero groups. */
function formatV6(bits: bigint): string {
  const groups = Array.from({ length: GROUPS }, (_, index) => Number((bits >> BigInt(112 - 16 * index)) & 0xffffn));
  let start = -1;
  let length = 1;
  for (let index = 0; index < GROUPS; index++) {
    let end = index;
    while (end < GROUPS && groups[end] === 0) {
      end++;
    }
    if (end - index > length) {
      start = index;
      length = end - index;
    }
  }
  const text = (from: number, to: number) =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(':');
  return start < 0 ? text(0, GROUPS) : `${text(0, start)}::${text(start + length, GROUPS)}`;
}

/** An error in an address: the message without its prefix. */
interface ParseError {
  readonly message: string;
  /** The invalid part of the text. */
  readonly at?: string;
}

interface ParsedAddress {
  readonly bits: bigint;
  readonly length: AddressLength;
  readonly zone: string;
}

/** Parses an address like Go's `netip.ParseAddr`. Zones are parsed, but an {@link IpAddress} has none. */
export function parseAddress(text: string): ParsedAddress | string {
  const parsed = dispatch(text);
  if (!('message' in parsed)) {
    return parsed;
  }
  const at = parsed.at === undefined || parsed.at === '' ? '' : ` (at ${quoteBytes(toBinary(parsed.at))})`;
  return `ParseAddr(${quote(text)}): ${parsed.message}${at}`;
}

/** The value of `ip(text)`. */
export function parseIp(text: string): IpAddress | EvaluationFailure {
  const parsed = parseAddress(text);
  if (typeof parsed === 'string') {
    return fail(`IP Address ${quote(text)} parse error during conversion from string: ${parsed}`);
  }
  if (parsed.zone !== '') {
    return fail(`IP address ${quote(text)} with zone value is not allowed`);
  }
  const address = new IpAddress(parsed.bits, parsed.length);
  return address.isMapped ? fail(`IPv4-mapped IPv6 address ${quote(text)} is not allowed`) : address;
}

function dispatch(text: string): ParsedAddress | ParseError {
  for (const character of text) {
    if (character === '.') {
      const bits = parseV4(text);
      return typeof bits === 'bigint' ? { bits, length: 32, zone: '' } : bits;
    }
    if (character === ':') {
      return parseV6(text);
    }
    if (character === '%') {
      return { message: 'missing IPv6 address' };
    }
  }
  return { message: 'unable to parse IP' };
}

function parseV4(text: string): bigint | ParseError {
  const fields: number[] = [];
  let value = 0;
  let digits = 0;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 0x30;
    if (digit >= 0 && digit <= 9) {
      if (digits === 1 && value === 0) {
        return { message: 'IPv4 field has octet with leading zero' };
      }
      value = value * 10 + digit;
      digits++;
      if (value > 255) {
        return { message: 'IPv4 field has value >255' };
      }
    } else if (text[index] === '.') {
      if (digits === 0 || index === text.length - 1) {
        return { message: 'IPv4 field must have at least one digit', at: text.slice(index) };
      }
      if (fields.length === IPV4_OCTETS - 1) {
        return { message: 'IPv4 address too long' };
      }
      fields.push(value);
      value = 0;
      digits = 0;
    } else {
      return { message: 'unexpected character', at: text.slice(index) };
    }
  }
  if (fields.length < IPV4_OCTETS - 1) {
    return { message: 'IPv4 address too short' };
  }
  return [...fields, value].reduce((bits, field) => (bits << 8n) | BigInt(field), 0n);
}

function parseV6(text: string): ParsedAddress | ParseError {
  const percent = text.indexOf('%');
  const zone = percent < 0 ? '' : text.slice(percent + 1);
  if (percent >= 0 && zone === '') {
    return { message: 'zone must be a non-empty string' };
  }
  const bits = new V6Parser(percent < 0 ? text : text.slice(0, percent)).parse();
  return typeof bits === 'bigint' ? { bits, length: 128, zone } : bits;
}

/** Parses the groups of an IPv6 address from left to right. */
class V6Parser {
  #rest: string;
  /** 16-bit groups. */
  readonly #groups: number[] = [];
  /** Index of the group that follows `::`. */
  #ellipsis = -1;

  constructor(text: string) {
    this.#rest = text;
  }

  parse(): bigint | ParseError {
    if (this.#rest.startsWith('::')) {
      this.#ellipsis = 0;
      this.#rest = this.#rest.slice(2);
      if (this.#rest === '') {
        return 0n;
      }
    }
    while (this.#groups.length < GROUPS) {
      const next = this.#readGroup();
      if (typeof next === 'object') {
        return next;
      }
      if (next === 'end') {
        break;
      }
    }
    return this.#rest === '' ? this.#assemble() : { message: 'trailing garbage after address', at: this.#rest };
  }

  /** Parses a group and the separator after it. */
  #readGroup(): ParseError | 'end' | 'more' {
    const text = this.#rest;
    const length = countHexDigits(text);
    if (length > 4) {
      return { message: 'each group must have 4 or less digits', at: text };
    }
    if (length === 0) {
      return { message: 'each colon-separated field must have at least one digit', at: text };
    }
    if (text[length] === '.') {
      return this.#readEmbedded();
    }
    this.#groups.push(Number.parseInt(text.slice(0, length), 16));
    this.#rest = text.slice(length);
    return this.#rest === '' ? 'end' : this.#readSeparator();
  }

  #readSeparator(): ParseError | 'end' | 'more' {
    if (!this.#rest.startsWith(':')) {
      return { message: 'unexpected character, want colon', at: this.#rest };
    }
    if (this.#rest.length === 1) {
      return { message: 'colon must be followed by more characters', at: this.#rest };
    }
    this.#rest = this.#rest.slice(1);
    if (!this.#rest.startsWith(':')) {
      return 'more';
    }
    if (this.#ellipsis >= 0) {
      return { message: 'multiple :: in address', at: this.#rest };
    }
    this.#ellipsis = this.#groups.length;
    this.#rest = this.#rest.slice(1);
    return this.#rest === '' ? 'end' : 'more';
  }

  /** Parses an IPv4 address in place of the last two groups. */
  #readEmbedded(): ParseError | 'end' {
    if (this.#ellipsis < 0 && this.#groups.length !== GROUPS - 2) {
      return { message: 'embedded IPv4 address must replace the final 2 fields of the address', at: this.#rest };
    }
    if (this.#groups.length + 2 > GROUPS) {
      return {
        message: 'too many hex fields to fit an embedded IPv4 at the end of the address',
        at: this.#rest,
      };
    }
    const bits = parseV4(this.#rest);
    if (typeof bits !== 'bigint') {
      return bits;
    }
    this.#groups.push(Number(bits >> 16n), Number(bits & 0xffffn));
    this.#rest = '';
    return 'end';
  }

  #assemble(): bigint | ParseError {
    const groups = [...this.#groups];
    if (groups.length === GROUPS && this.#ellipsis >= 0) {
      return { message: 'the :: must expand to at least one field of zeros' };
    }
    if (groups.length < GROUPS) {
      if (this.#ellipsis < 0) {
        return { message: 'address string too short' };
      }
      groups.splice(this.#ellipsis, 0, ...Array<number>(GROUPS - groups.length).fill(0));
    }
    return groups.reduce((bits, group) => (bits << 16n) | BigInt(group), 0n);
  }
}

/** Number of leading hexadecimal digits; 5 means five or more. */
function countHexDigits(text: string): number {
  let length = 0;
  while (length < 5 && /[0-9a-fA-F]/.test(text.charAt(length))) {
    length++;
  }
  return length;
}
