import { isInt64 } from '../../../go/index.ts';
import { operand, stringOperand, undefinedBecause } from './builtin.ts';
import type { OpaBuiltin } from './builtin.ts';
import { RegoNumber } from './number.ts';

interface Version {
  readonly numbers: readonly bigint[];
  readonly preRelease: readonly string[];
}

const IDENTIFIERS = /^[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*$/;
/** Digits of the largest int64. */
const INT64_DIGITS = 19;
const NUMERIC = /^(?:0|[1-9][0-9]*)$/;

/** SemVer 2.0.0, with the leading `v` that OPA accepts. */
function parseVersion(text: string): Version | undefined {
  const [withoutBuild = '', ...build] = splitOnce(text.replace(/^v/, ''), '+');
  const [core = '', ...preRelease] = splitOnce(withoutBuild, '-');
  const numbers = core.split('.');
  if (![...build, ...preRelease].every((part) => IDENTIFIERS.test(part))) {
    return undefined;
  }
  const identifiers = preRelease.flatMap((part) => part.split('.'));
  const hasLeadingZero = identifiers.some((part) => /^[0-9]+$/.test(part) && !NUMERIC.test(part));
  if (
    hasLeadingZero ||
    numbers.length !== 3 ||
    !numbers.every((part) => NUMERIC.test(part) && part.length <= INT64_DIGITS && isInt64(BigInt(part)))
  ) {
    return undefined;
  }
  return { numbers: numbers.map(BigInt), preRelease: identifiers };
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function compareVersions(a: Version, b: Version): number {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n;
    if (number !== other) {
      return number < other ? -1 : 1;
    }
  }
  if (a.preRelease.length === 0 || b.preRelease.length === 0) {
    return Math.sign(b.preRelease.length - a.preRelease.length);
  }
  for (const [index, identifier] of a.preRelease.entries()) {
    const other = b.preRelease[index];
    if (other === undefined) {
      return 1;
    }
    const order = compareIdentifiers(identifier, other);
    if (order !== 0) {
      return order;
    }
  }
  return Math.sign(a.preRelease.length - b.preRelease.length);
}

function compareIdentifiers(a: string, b: string): number {
  const aIsNumber = NUMERIC.test(a);
  const bIsNumber = NUMERIC.test(b);
  if (aIsNumber !== bIsNumber) {
    return aIsNumber ? -1 : 1;
  }
  if (aIsNumber && a.length !== b.length) {
    return a.length < b.length ? -1 : 1;
  }
  return a === b ? 0 : a < b ? -1 : 1;
}

const compare: OpaBuiltin = (operands) => {
  const [a, b] = [stringOperand(operands, 0), stringOperand(operands, 1)].map(parseVersion);
  if (a === undefined || b === undefined) {
    undefinedBecause('semver.compare: not a semantic version');
  }
  return RegoNumber.of(compareVersions(a, b));
};

const isValid: OpaBuiltin = (operands) => {
  const text = operand(operands, 0);
  return typeof text === 'string' && parseVersion(text) !== undefined;
};

export const semverBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['semver.compare', compare],
  ['semver.is_valid', isValid],
];
