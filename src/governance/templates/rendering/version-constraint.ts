/** A semantic version; missing minor and patch numbers are 0, as in Masterminds/semver. */
export interface Version {
  readonly numbers: readonly [major: number, minor: number, patch: number];
  readonly prerelease: string;
  readonly metadata: string;
}

/** Longest version: real versions have fewer digits. */
const MAX_VERSION_LENGTH = 256;
const VERSION =
  /^v?(0|[1-9]\d{0,14})(?:\.(0|[1-9]\d{0,14}))?(?:\.(0|[1-9]\d{0,14}))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?$/;

export function parseVersion(text: string): Version | undefined {
  const match = text.length <= MAX_VERSION_LENGTH ? VERSION.exec(text) : null;
  if (match === null) {
    return undefined;
  }
  const [, major, minor, patch, prerelease = '', metadata = ''] = match;
  return { numbers: [Number(major), Number(minor ?? 0), Number(patch ?? 0)], prerelease, metadata };
}

/** A range of versions: from the lower bound up to below the upper bound. */
interface Bounds {
  readonly least?: Version;
  readonly isLeastExcluded?: boolean;
  readonly below?: Version;
  readonly isBelowIncluded?: boolean;
  /** Whether versions outside of the bounds are meant (`!=`). */
  readonly isNegated?: boolean;
  /** Whether pre-releases may satisfy it: it names one itself. */
  readonly hasPrerelease: boolean;
}

/** Alternatives, each of which is bounds that must all hold. */
export type Constraint = readonly (readonly Bounds[])[];

const PART = '(?:0|[1-9]\\d{0,14}|[xX*])';
const PRIMITIVE = new RegExp(
  `(=|==|!=|>|<|>=|=>|<=|=<|~|~>|\\^)?\\s*v?(${PART})(?:\\.(${PART}))?(?:\\.(${PART}))?(?:-([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?(?:\\+[0-9A-Za-z.-]+)?(?=$|[\\s,])`,
  'y',
);
const HYPHEN = /^\s*(\S+)\s+-\s+(\S+)\s*$/;
const MAX_CONSTRAINT_LENGTH = 1000;

/** A constraint of Masterminds/semver: `>=1.2, <2 || ~3.1 || ^4 || 5.x || 1.0 - 1.5`. */
export function parseConstraint(text: string): Constraint | undefined {
  if (text.length > MAX_CONSTRAINT_LENGTH) {
    return undefined;
  }
  const alternatives = text.split('||').map(parseAlternative);
  return alternatives.every((bounds) => bounds !== undefined) ? alternatives : undefined;
}

function parseAlternative(text: string): readonly Bounds[] | undefined {
  const [, from, to] = HYPHEN.exec(text) ?? [];
  const source = from === undefined || to === undefined ? text.trim() : `>=${from}, <=${to}`;
  const bounds: Bounds[] = [];
  let at = 0;
  while (at < source.length) {
    PRIMITIVE.lastIndex = at;
    const match = PRIMITIVE.exec(source);
    if (match === null) {
      return undefined;
    }
    bounds.push(boundsOf(match));
    at = PRIMITIVE.lastIndex;
    at += /^[\s,]*/.exec(source.slice(at))?.[0].length ?? 0;
  }
  return bounds.length === 0 ? undefined : bounds;
}

function boundsOf([, operator = '', ...parts]: readonly (string | undefined)[]): Bounds {
  const [major, minor, patch, prerelease = ''] = parts;
  const known = [major, minor, patch].map((part) =>
    part === undefined || /[xX*]/.test(part) ? undefined : Number(part),
  );
  const wild = known.indexOf(undefined);
  /** How many numbers are given. */
  const given = wild === -1 ? 3 : wild;
  const numbers = [0, 1, 2].map((index) => (index < given ? (known[index] ?? 0) : 0));
  const base = versionOf(numbers, prerelease);
  const hasPrerelease = prerelease !== '';
  if (given === 0) {
    // `*`; comparisons with it are always or never true, as in Masterminds/semver.
    return ['>', '<', '!='].includes(operator) ? { below: base, hasPrerelease } : { hasPrerelease };
  }
  switch (operator) {
    case '>':
      return given === 3
        ? { least: base, isLeastExcluded: true, hasPrerelease }
        : { least: next(numbers, given - 1), hasPrerelease };
    case '>=':
    case '=>':
      return { least: base, hasPrerelease };
    case '<':
      return { below: base, hasPrerelease };
    case '<=':
    case '=<':
      return given === 3
        ? { below: base, isBelowIncluded: true, hasPrerelease }
        : { below: next(numbers, given - 1), hasPrerelease };
    case '~':
    case '~>':
      return { least: base, below: next(numbers, Math.min(given - 1, 1)), hasPrerelease };
    case '^':
      return { least: base, below: next(numbers, caretPlace(numbers, given)), hasPrerelease };
    case '!=':
      return { ...exactly(base, numbers, given), isNegated: true, hasPrerelease };
    default:
      return { ...exactly(base, numbers, given), hasPrerelease };
  }
}

function exactly(base: Version, numbers: readonly number[], given: number): Omit<Bounds, 'hasPrerelease'> {
  return given === 3
    ? { least: base, below: base, isBelowIncluded: true }
    : { least: base, below: next(numbers, given - 1) };
}

/** `^` keeps the first number that is not zero. */
function caretPlace(numbers: readonly number[], given: number): number {
  const first = numbers.findIndex((number) => number !== 0);
  return first === -1 ? given - 1 : first;
}

function versionOf([major = 0, minor = 0, patch = 0]: readonly number[], prerelease = ''): Version {
  return { numbers: [major, minor, patch], prerelease, metadata: '' };
}

/** The version with the number at a place increased, and zeros after it. */
function next(numbers: readonly number[], place: number): Version {
  return versionOf(numbers.map((number, index) => (index < place ? number : index === place ? number + 1 : 0)));
}

export function satisfies(version: Version, constraint: Constraint): boolean {
  return constraint.some((bounds) => bounds.every((one) => isWithin(version, one)));
}

function isWithin(version: Version, bounds: Bounds): boolean {
  const { least, below, isLeastExcluded = false, isBelowIncluded = false, isNegated = false, hasPrerelease } = bounds;
  // Pre-releases are not stable: only a constraint that names one selects them.
  if (version.prerelease !== '' && !hasPrerelease) {
    return isNegated;
  }
  const low = least === undefined ? 1 : compare(version, least);
  const high = below === undefined ? -1 : compare(version, below);
  const isInside = (low > 0 || (low === 0 && !isLeastExcluded)) && (high < 0 || (high === 0 && isBelowIncluded));
  return isInside !== isNegated;
}

function compare(a: Version, b: Version): number {
  for (const [index, number] of a.numbers.entries()) {
    const difference = number - (b.numbers[index] ?? 0);
    if (difference !== 0) {
      return difference;
    }
  }
  return comparePrereleases(a.prerelease, b.prerelease);
}

/** A version without a pre-release is greater; identifiers of digits are numbers, and come first. */
function comparePrereleases(a: string, b: string): number {
  if (a === b || a === '' || b === '') {
    return a === b ? 0 : a === '' ? 1 : -1;
  }
  const [left, right] = [a.split('.'), b.split('.')];
  for (const [index, part] of left.entries()) {
    const other = right[index];
    const order = other === undefined ? 1 : compareIdentifiers(part, other);
    if (order !== 0) {
      return order;
    }
  }
  return left.length - right.length;
}

function compareIdentifiers(a: string, b: string): number {
  const [isNumberA, isNumberB] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (isNumberA && isNumberB) {
    return Number(a) - Number(b);
  }
  if (isNumberA !== isNumberB) {
    return isNumberA ? -1 : 1;
  }
  return a === b ? 0 : a < b ? -1 : 1;
}
