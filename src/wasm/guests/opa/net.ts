import { WasmError } from '../../binary/errors.ts';
import { collectionOperand, operand, stringOperand, undefinedBecause, wrongType } from './builtin.ts';
import type { OpaBuiltin } from './builtin.ts';
import { FUEL_PER_VALUE } from './objects.ts';
import { RegoNumber } from './number.ts';
import { isArray, RegoObject, RegoSet } from './value.ts';
import type { RegoValue } from './value.ts';

/** Addresses have 128 bits; IPv4 addresses are mapped into ::ffff:0:0/96, as in Go. */
const MAPPED = 0xffffn << 32n;
const MAPPED_PREFIX = 96;
const ALL = (1n << 128n) - 1n;

interface Network {
  readonly address: bigint;
  /** Prefix length for 128 bits. */
  readonly prefix: number;
  /** Whether it was written as IPv4. An IPv4-mapped IPv6 address also belongs to IPv4. */
  readonly isV4Text: boolean;
}

function isV4(address: bigint): boolean {
  return address >> 32n === 0xffffn;
}

function maskOf(prefix: number): bigint {
  return ALL ^ ((1n << BigInt(128 - prefix)) - 1n);
}

function parseV4(text: string): bigint | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) {
    return undefined;
  }
  return parts.reduce((address, part) => (address << 8n) | BigInt(part), 0n);
}

function parseV6(text: string): bigint | undefined {
  let body = text;
  const dotted = /^(.*:)([0-9.]+)$/.exec(text);
  if (dotted?.[2]?.includes('.') === true) {
    const v4 = parseV4(dotted[2]);
    if (v4 === undefined) {
      return undefined;
    }
    body = `${dotted[1] ?? ''}${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`;
  }
  const halves = body.split('::');
  const groups = halves.map((half) => (half === '' ? [] : half.split(':')));
  const [head = [], tail = []] = groups;
  const missing = 8 - head.length - tail.length;
  const isComplete = halves.length === 1 ? missing === 0 : halves.length === 2 && missing >= 1;
  if (!isComplete || ![...head, ...tail].every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) {
    return undefined;
  }
  const all = [...head, ...Array.from({ length: missing }, () => '0'), ...tail];
  return all.reduce((address, group) => (address << 16n) | BigInt(`0x${group}`), 0n);
}

function parseAddress(text: string): bigint | undefined {
  if (text.includes(':')) {
    return parseV6(text);
  }
  const v4 = parseV4(text);
  return v4 === undefined ? undefined : v4 | MAPPED;
}

function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf('/');
  const address = parseAddress(text.slice(0, Math.max(slash, 0)));
  const length = text.slice(slash + 1);
  const isV4Text = !text.includes(':');
  if (slash === -1 || address === undefined || !/^\d{1,5}$/.test(length) || Number(length) > (isV4Text ? 32 : 128)) {
    return undefined;
  }
  const prefix = Number(length) + (isV4Text ? MAPPED_PREFIX : 0);
  return { address: address & maskOf(prefix), prefix, isV4Text };
}

function requireNetwork(text: string): Network {
  return parseNetwork(text) ?? undefinedBecause(`not a CIDR: ${text}`);
}

function contains(network: Network, address: bigint): boolean {
  if (isV4(network.address) !== isV4(address)) {
    return false;
  }
  // For IPv4, only the last 32 bits of the mask count.
  const mask = isV4(address) ? maskOf(Math.max(network.prefix, MAPPED_PREFIX)) : maskOf(network.prefix);
  return (network.address & mask) === (address & mask);
}

function lastOf({ address, prefix }: Network): bigint {
  return address | (ALL ^ maskOf(prefix));
}

function containsText(network: Network, text: string): boolean {
  const address = parseAddress(text);
  if (address !== undefined) {
    return contains(network, address);
  }
  const other = requireNetwork(text);
  if (!isV4(network.address) && !isV4(other.address)) {
    return network.prefix <= other.prefix && contains(network, other.address);
  }
  return contains(network, other.address) && contains(network, lastOf(other));
}

function addressText(address: bigint): string {
  if (isV4(address)) {
    return [24n, 16n, 8n, 0n].map((shift) => (address >> shift) & 0xffn).join('.');
  }
  const groups = address.toString(16).padStart(32, '0').match(/.{4}/g) ?? [];
  const text = groups.map((group) => group.replace(/^0{1,3}/, '')).join(':');
  // The first of the longest runs of two or more zero groups becomes "::".
  const runs = [...text.matchAll(/(?<=^|:)0(?::0)+(?=$|:)/g)];
  const longest = runs.reduce<RegExpExecArray | undefined>(
    (best, run) => (run[0].length > (best?.[0].length ?? 0) ? run : best),
    undefined,
  );
  if (longest === undefined) {
    return text;
  }
  const head = text.slice(0, longest.index).replace(/:$/, '');
  const tail = text.slice(longest.index + longest[0].length).replace(/^:/, '');
  return `${head}::${tail}`;
}

function networkText({ address, prefix, isV4Text }: Network): string {
  return `${addressText(address)}/${isV4Text || isV4(address) ? prefix - MAPPED_PREFIX : prefix}`;
}

const isValid: OpaBuiltin = (operands) => {
  const text = operand(operands, 0);
  return typeof text === 'string' && parseNetwork(text) !== undefined;
};

/** Maximum number of addresses in one expansion: an IPv4 /12. */
const MAX_EXPANDED = 1 << 20;

const expand: OpaBuiltin = (operands, context) => {
  const network = requireNetwork(stringOperand(operands, 0));
  const count = lastOf(network) - network.address + 1n;
  if (count > MAX_EXPANDED) {
    throw new WasmError('out-of-fuel', `net.cidr_expand: more than ${MAX_EXPANDED} addresses`);
  }
  context.charge(Number(count) * FUEL_PER_VALUE);
  return new RegoSet(Array.from({ length: Number(count) }, (_, index) => addressText(network.address + BigInt(index))));
};

/** Pairs of a CIDR (a string, or the first element of an array) and its key in the result. */
function indexed(value: RegoValue): (readonly [RegoValue, RegoValue])[] {
  if (typeof value === 'string') {
    return [[value, value]];
  }
  if (isArray(value)) {
    return value.map((item, index) => [cidrOf(item), RegoNumber.of(index)]);
  }
  if (value instanceof RegoSet) {
    return value.sorted().map((item) => [cidrOf(item), item]);
  }
  return value instanceof RegoObject ? value.sorted().map(([key, item]) => [cidrOf(item), key]) : [];
}

function cidrOf(item: RegoValue): RegoValue {
  const cidr = isArray(item) ? item[0] : item;
  return cidr !== undefined && (typeof cidr === 'string' || isArray(item))
    ? cidr
    : wrongType(item, 0, 'string', 'array');
}

const containsMatches: OpaBuiltin = (operands, context) => {
  const networks = indexed(operand(operands, 0));
  const candidates = indexed(operand(operands, 1));
  context.charge(networks.length * candidates.length * FUEL_PER_VALUE);
  const pairs: RegoValue[] = [];
  for (const [network, index] of networks) {
    for (const [candidate, otherIndex] of candidates) {
      const parsed = requireNetwork(typeof network === 'string' ? network : wrongType(network, 0, 'string'));
      if (containsText(parsed, typeof candidate === 'string' ? candidate : wrongType(candidate, 1, 'string'))) {
        pairs.push([index, otherIndex]);
      }
    }
  }
  return new RegoSet(pairs);
};

interface Range {
  readonly first: bigint;
  readonly last: bigint;
  /** The network as written; undefined for merged ranges. */
  readonly network: Network | undefined;
}

const merge: OpaBuiltin = (operands) => {
  const ranges = collectionOperand(operands, 0).map((item) =>
    rangeOf(typeof item === 'string' ? item : wrongType(item, 0, 'string')),
  );
  ranges.sort((a, b) => compareBigints(a.last, b.last) || compareBigints(a.first, b.first));
  const merged: Range[] = [];
  // Starting with the last range, each one absorbs the ranges that it touches.
  for (const range of ranges.toReversed()) {
    const above = merged.at(-1);
    if (above !== undefined && above.first - 1n <= range.last && isV4(above.first) === isV4(range.last)) {
      merged[merged.length - 1] = { first: minBigint(range.first, above.first), last: above.last, network: undefined };
    } else {
      merged.push(range);
    }
  }
  return new RegoSet(
    merged.flatMap((range) => (range.network === undefined ? cidrsOf(range) : [networkText(range.network)])),
  );
};

function rangeOf(text: string): Range {
  const address = parseAddress(text);
  if (address === undefined) {
    const network = requireNetwork(text);
    return { first: network.address, last: lastOf(network), network };
  }
  if (!isV4(address)) {
    return undefinedBecause('net.cidr_merge: an IPv6 address needs a prefix length');
  }
  // OPA gives an address without a prefix the network of its class (RFC 791), and prints it unmasked if nothing was
  // merged.
  const prefix = classPrefix(Number((address >> 24n) & 0xffn)) + MAPPED_PREFIX;
  const network = { address, prefix, isV4Text: true };
  return { first: address & maskOf(prefix), last: lastOf(network), network };
}

function classPrefix(firstByte: number): number {
  if (firstByte < 0x80) {
    return 8;
  }
  return firstByte < 0xc0 ? 16 : 24;
}

/** The smallest set of networks that covers a range. */
function cidrsOf({ first, last }: Range): string[] {
  const texts: string[] = [];
  let at = first;
  while (at <= last) {
    let bits = 0;
    while (bits < 128 && (at & ((1n << BigInt(bits + 1)) - 1n)) === 0n && at + (1n << BigInt(bits + 1)) - 1n <= last) {
      bits += 1;
    }
    texts.push(networkText({ address: at, prefix: 128 - bits, isV4Text: isV4(at) }));
    at += 1n << BigInt(bits);
  }
  return texts;
}

function compareBigints(a: bigint, b: bigint): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

function minBigint(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export const netBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['net.cidr_is_valid', isValid],
  ['net.cidr_expand', expand],
  ['net.cidr_contains_matches', containsMatches],
  ['net.cidr_merge', merge],
];
