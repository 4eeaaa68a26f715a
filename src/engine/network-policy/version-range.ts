import { compareProviderVersions, parseProviderVersion } from './provider-version.ts';
import type { ProviderVersion } from './provider-version.ts';

/** Versions from one, inclusive, to another, exclusive. An absent bound is none. */
export interface VersionRange {
  readonly text: string;
  readonly from?: ProviderVersion['numbers'];
  readonly before?: ProviderVersion['numbers'];
}

const RANGE = /^(?:>=(\S{1,40}))?(?:(?:^| )<(\S{1,40}))?$/;

/** Reads `*`, `>=1.2.0`, `<1.2.0` or `>=1.2.0 <1.3.0`. Undefined for anything else, and for an empty range. */
export function parseVersionRange(text: string): VersionRange | undefined {
  if (text === '*') {
    return { text };
  }
  const [match, fromText, beforeText] = RANGE.exec(text) ?? [];
  const [from, before] = [boundOf(fromText), boundOf(beforeText)];
  const isKnown =
    (from !== undefined) === (fromText !== undefined) && (before !== undefined) === (beforeText !== undefined);
  if (
    match === undefined ||
    match === '' ||
    !isKnown ||
    (from && before && compareProviderVersions(from, before) >= 0)
  ) {
    return undefined;
  }
  return { text, ...(from === undefined ? {} : { from }), ...(before === undefined ? {} : { before }) };
}

function boundOf(text: string | undefined): ProviderVersion['numbers'] | undefined {
  return text === undefined || !/^\d+(?:\.\d+){0,2}$/.test(text) ? undefined : parseProviderVersion(text)?.numbers;
}

/** A version before a release lies where the release lies. */
export function isInRange({ numbers }: Pick<ProviderVersion, 'numbers'>, { from, before }: VersionRange): boolean {
  return (
    (from === undefined || compareProviderVersions(numbers, from) >= 0) &&
    (before === undefined || compareProviderVersions(numbers, before) < 0)
  );
}

/** Where consecutive ranges overlap or leave a hole, in words; nothing when they cover every version once, in order. */
export function coverageFaults(ranges: readonly VersionRange[]): readonly string[] {
  const faults: string[] = [];
  if (ranges[0]?.from !== undefined) {
    faults.push(`no row covers the versions before ${ranges[0].from.join('.')}`);
  }
  for (const [index, range] of ranges.entries()) {
    const next = ranges[index + 1];
    if (next === undefined) {
      continue;
    }
    const order =
      range.before === undefined || next.from === undefined ? -1 : compareProviderVersions(next.from, range.before);
    if (order < 0) {
      faults.push(`"${next.text}" overlaps "${range.text}": rows must be in the order of their versions`);
    } else if (order > 0) {
      faults.push(`no row covers the versions between "${range.text}" and "${next.text}"`);
    }
  }
  const last = ranges.at(-1);
  if (last?.before !== undefined) {
    faults.push(`no row covers the versions from ${last.before.join('.')}`);
  }
  return faults;
}
