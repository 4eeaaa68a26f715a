import { quote } from '../../go/index.ts';
import type { CelValue, EvaluationFailure } from '../model/value.ts';
import { LibraryValue } from '../model/library-value.ts';
import { fail } from './declare.ts';

const MAX_NUMBER = 2n ** 64n - 1n;
/** Maximum number of digits; longer numbers are out of range. */
const MAX_DIGITS = 20;

/** A semantic version (https://semver.org): a value of type `kubernetes.Semver`. */
export class Semver extends LibraryValue {
  readonly typeName = 'kubernetes.Semver';
  readonly major: bigint;
  readonly minor: bigint;
  readonly patch: bigint;
  /** Numbers, and identifiers with other characters than digits. */
  readonly #prerelease: readonly (bigint | string)[];
  readonly #build: readonly string[];

  constructor(
    numbers: readonly [major: bigint, minor: bigint, patch: bigint],
    prerelease: readonly (bigint | string)[],
    build: readonly string[],
  ) {
    super();
    [this.major, this.minor, this.patch] = numbers;
    this.#prerelease = prerelease;
    this.#build = build;
  }

  protected override isComparableTo(other: CelValue): boolean {
    return other instanceof Semver;
  }

  /** Build metadata is ignored. */
  equals(other: CelValue): boolean {
    return other instanceof Semver && this.compareTo(other) === 0;
  }

  compareTo(other: Semver): -1 | 0 | 1 {
    const numbers = order(this.major, other.major) || order(this.minor, other.minor) || order(this.patch, other.patch);
    return numbers === 0 ? comparePrereleases(this.#prerelease, other.#prerelease) : numbers;
  }

  override toString(): string {
    const prerelease = this.#prerelease.length === 0 ? '' : `-${this.#prerelease.join('.')}`;
    const build = this.#build.length === 0 ? '' : `+${this.#build.join('.')}`;
    return `${this.major}.${this.minor}.${this.patch}${prerelease}${build}`;
  }
}

function order<T extends bigint | string | number>(left: T, right: T): -1 | 0 | 1 {
  if (left === right) {
    return 0;
  }
  return left < right ? -1 : 1;
}

/** A version without a prerelease is greater. Identifiers are compared from left to right; numbers come first. */
function comparePrereleases(left: readonly (bigint | string)[], right: readonly (bigint | string)[]): -1 | 0 | 1 {
  if (left.length === 0 || right.length === 0) {
    return order(right.length === 0 ? 0 : 1, left.length === 0 ? 0 : 1) === 0 ? 0 : left.length === 0 ? 1 : -1;
  }
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const result = compareIdentifiers(left[index] ?? '', right[index] ?? '');
    if (result !== 0) {
      return result;
    }
  }
  return order(left.length, right.length);
}

function compareIdentifiers(left: bigint | string, right: bigint | string): -1 | 0 | 1 {
  if (typeof left !== typeof right) {
    return typeof left === 'bigint' ? -1 : 1;
  }
  return order(left, right);
}

/** The value of `semver(text)`. With `isNormalized`, a leading `v`, leading zeros and missing parts are accepted. */
export function parseSemver(text: string, isNormalized = false): Semver | EvaluationFailure {
  const normal = isNormalized ? normalize(text) : text;
  if (typeof normal !== 'string') {
    return normal;
  }
  const problem = normal === '' ? 'Version string empty' : undefined;
  const parts = splitVersion(normal);
  if (problem !== undefined || parts === undefined) {
    return fail(problem ?? 'No Major.Minor.Patch elements found');
  }
  return parseParts(parts);
}

/** Major and minor number, and the text after the second point. */
function splitVersion(text: string): readonly [major: string, minor: string, rest: string] | undefined {
  const first = text.indexOf('.');
  const second = first < 0 ? -1 : text.indexOf('.', first + 1);
  return second < 0 ? undefined : [text.slice(0, first), text.slice(first + 1, second), text.slice(second + 1)];
}

function normalize(text: string): string | EvaluationFailure {
  const bare = text.startsWith('v') ? text.slice(1) : text;
  const whole = splitVersion(bare);
  const parts = (whole ?? bare.split('.')).map(withoutLeadingZeros);
  if (whole === undefined && /[+-]/.test(parts.at(-1) ?? '')) {
    return fail('short version cannot contain PreRelease/Build meta data');
  }
  while (parts.length < 3) {
    parts.push('0');
  }
  return parts.join('.');
}

function withoutLeadingZeros(part: string): string {
  if (part.length <= 1) {
    return part;
  }
  const rest = part.replace(/^0+/, '');
  return /^[0-9]/.test(rest) ? rest : `0${rest}`;
}

function parseParts([major, minor, rest]: readonly [string, string, string]): Semver | EvaluationFailure {
  const plus = rest.indexOf('+');
  const beforeBuild = plus < 0 ? rest : rest.slice(0, plus);
  const hyphen = beforeBuild.indexOf('-');
  const patch = hyphen < 0 ? beforeBuild : beforeBuild.slice(0, hyphen);
  const prerelease = hyphen < 0 ? [] : beforeBuild.slice(hyphen + 1).split('.');
  const build = plus < 0 ? [] : rest.slice(plus + 1).split('.');
  const numbers: bigint[] = [];
  for (const [name, digits] of [
    ['major', major],
    ['minor', minor],
    ['patch', patch],
  ] as const) {
    const number = parseNumber(name, digits);
    if (typeof number !== 'bigint') {
      return number;
    }
    numbers.push(number);
  }
  const identifiers: (bigint | string)[] = [];
  for (const text of prerelease) {
    const identifier = parseIdentifier(text);
    if (typeof identifier === 'object') {
      return identifier;
    }
    identifiers.push(identifier);
  }
  const problem = buildProblem(build);
  const [first = 0n, second = 0n, third = 0n] = numbers;
  return problem ?? new Semver([first, second, third], identifiers, build);
}

function parseNumber(name: string, digits: string): bigint | EvaluationFailure {
  if (!/^[0-9]*$/.test(digits)) {
    return fail(`Invalid character(s) found in ${name} number ${quote(digits)}`);
  }
  if (/^0./.test(digits)) {
    return fail(
      `${name.charAt(0).toUpperCase()}${name.slice(1)} number must not contain leading zeroes ${quote(digits)}`,
    );
  }
  return toNumber(digits);
}

function toNumber(digits: string): bigint | EvaluationFailure {
  if (digits === '') {
    return fail('strconv.ParseUint: parsing "": invalid syntax');
  }
  const number = digits.length > MAX_DIGITS ? undefined : BigInt(digits);
  return number === undefined || number > MAX_NUMBER
    ? fail(`strconv.ParseUint: parsing ${quote(digits)}: value out of range`)
    : number;
}

function parseIdentifier(text: string): bigint | string | EvaluationFailure {
  if (text === '') {
    return fail('Prerelease is empty');
  }
  if (/^[0-9]+$/.test(text)) {
    return /^0./.test(text)
      ? fail(`Numeric PreRelease version must not contain leading zeroes ${quote(text)}`)
      : toNumber(text);
  }
  return /^[0-9A-Za-z-]+$/.test(text) ? text : fail(`Invalid character(s) found in prerelease ${quote(text)}`);
}

function buildProblem(build: readonly string[]): EvaluationFailure | undefined {
  for (const text of build) {
    if (text === '') {
      return fail('Build meta data is empty');
    }
    if (!/^[0-9A-Za-z-]+$/.test(text)) {
      return fail(`Invalid character(s) found in build meta data ${quote(text)}`);
    }
  }
  return undefined;
}
