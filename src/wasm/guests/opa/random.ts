import { randomBytes } from 'node:crypto';
import { intOperand, operand, stringOperand, undefinedBecause } from './builtin.ts';
import type { BuiltinContext, OpaBuiltin } from './builtin.ts';
import { RegoNumber } from './number.ts';
import { identityOf, RegoObject } from './value.ts';
import type { RegoValue } from './value.ts';

/** Returns the same result for equal calls in one evaluation. */
function once(context: BuiltinContext, call: string, generate: () => RegoValue): RegoValue {
  const previous = context.randomResults.get(call);
  if (previous !== undefined) {
    return previous;
  }
  const result = generate();
  context.randomResults.set(call, result);
  return result;
}

const intn: OpaBuiltin = (operands, context) => {
  const name = stringOperand(operands, 0);
  const signed = intOperand(operands, 1);
  const bound = signed < 0n ? -signed : signed;
  if (bound === 0n) {
    return RegoNumber.of(0);
  }
  return once(context, `rand.intn ${bound} ${name}`, () => RegoNumber.of(randomBelow(bound)));
};

/** Twice the bits of the largest bound, which makes the bias of the remainder negligible. */
const RANDOM_BYTES = 16;

function randomBelow(bound: bigint): bigint {
  return BigInt(`0x${randomBytes(RANDOM_BYTES).toString('hex')}`) % bound;
}

const UUID_BYTES = 16;

const uuid4: OpaBuiltin = (operands, context) =>
  once(context, `uuid.rfc4122 ${identityOf(operand(operands, 0))}`, () => {
    const bytes = randomBytes(UUID_BYTES);
    bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
    bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
    return dashed(bytes.toString('hex'));
  });

function dashed(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The notations that Go's uuid package accepts. It takes any first and last character of 38 as braces. */
const NOTATIONS = [
  /^(?:urn:uuid:)?([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})$/i,
  /^.([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12}).$/i,
  /^([0-9a-f]{32})$/i,
];

/** 100 ns steps from the start of the Gregorian calendar (1582-10-15) to 1970. */
const GREGORIAN_TO_UNIX = 122_192_928_000_000_000n;

const parse: OpaBuiltin = (operands) => {
  const text = stringOperand(operands, 0);
  const groups = NOTATIONS.map((notation) => notation.exec(text)).find((found) => found !== null);
  if (groups === null || groups === undefined) {
    return undefinedBecause('uuid.parse: not a UUID');
  }
  const bytes = Buffer.from(groups.slice(1).join(''), 'hex');
  const version = bytes.readUInt8(6) >> 4;
  const fields: [string, RegoValue][] = [
    ['version', RegoNumber.of(version)],
    ['variant', variantOf(bytes.readUInt8(8))],
  ];
  if (version === 1 || version === 2) {
    fields.push(...timeFields(bytes));
  }
  if (version === 2) {
    const domain = bytes.readUInt8(9);
    fields.push(['id', RegoNumber.of(bytes.readUInt32BE(0))], ['domain', DOMAINS[domain] ?? `Domain${domain}`]);
  }
  return new RegoObject(fields);
};

const DOMAINS = ['Person', 'Group', 'Org'];

function variantOf(byte: number): string {
  if ((byte & 0xc0) === 0x80) {
    return 'RFC4122';
  }
  if ((byte & 0xe0) === 0xc0) {
    return 'Microsoft';
  }
  return (byte & 0xe0) === 0xe0 ? 'Future' : 'Reserved';
}

function timeFields(bytes: Buffer): [string, RegoValue][] {
  const high = BigInt(bytes.readUInt16BE(6) & 0x0fff);
  const steps = (high << 48n) | (BigInt(bytes.readUInt16BE(4)) << 32n) | BigInt(bytes.readUInt32BE(0));
  const node = bytes.readUInt8(10);
  return [
    ['time', RegoNumber.of(BigInt.asIntN(64, (steps - GREGORIAN_TO_UNIX) * 100n))],
    ['nodeid', (bytes.toString('hex', 10).match(/../g) ?? []).join('-')],
    ['macvariables', `${(node & 2) === 2 ? 'local' : 'global'}:${(node & 1) === 1 ? 'multicast' : 'unicast'}`],
    ['clocksequence', RegoNumber.of(bytes.readUInt16BE(8) & 0x3fff)],
  ];
}

export const randomBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['rand.intn', intn],
  ['uuid.rfc4122', uuid4],
  ['uuid.parse', parse],
];
