import { compareProviderVersions, parseProviderVersion } from './provider-version.ts';
import type { ProviderVersion } from './provider-version.ts';

/** Versions from one, inclusive, to another, exclusive. An absent bound is none. */
interface VersionSpan {
  readonly from?: ProviderVersion['numbers'];
  readonly before?: ProviderVersion['numbers'];
}

/** Versions with holes: a fix that is in several release lines is in spans of its own in each. */
export interface VersionRange {
  readonly text: string;
  /** In the order of their versions, none next to another. */
  readonly spans: readonly VersionSpan[];
}

const SEPARATOR = ' || ';
const SPAN = /^(?:>=(\S{1,40}))?(?:(?:^| )<(\S{1,40}))?$/;

/** Reads `*`, `>=1.2.0`, `<1.2.0`, `>=1.2.0 <1.3.0`, or several of them: `<1.2.0 || >=1.3.0`. Undefined for anything else. */
export function parseVersionRange(text: string): VersionRange | undefined {
  if (text === '*') {
    return { text, spans: [{}] };
  }
  const spans = text.split(SEPARATOR).map(parseSpan);
  const known = spans.filter((span) => span !== undefined);
  const isOrdered = known.every((span, index) => index === 0 || gapBefore(span, known[index - 1]) > 0);
  return known.length === spans.length && isOrdered ? { text, spans: known } : undefined;
}

/** Undefined for an empty span, too. */
function parseSpan(text: string): VersionSpan | undefined {
  const [match, fromText, beforeText] = SPAN.exec(text) ?? [];
  const [from, before] = [boundOf(fromText), boundOf(beforeText)];
  const isKnown =
    (from !== undefined) === (fromText !== undefined) && (before !== undefined) === (beforeText !== undefined);
  const isEmpty = from !== undefined && before !== undefined && compareProviderVersions(from, before) >= 0;
  return match === undefined || match === '' || !isKnown || isEmpty
    ? undefined
    : { ...(from === undefined ? {} : { from }), ...(before === undefined ? {} : { before }) };
}

function boundOf(text: string | undefined): ProviderVersion['numbers'] | undefined {
  return text === undefined || !/^\d+(?:\.\d+){0,2}$/.test(text) ? undefined : parseProviderVersion(text)?.numbers;
}

/** Negative where the span begins before the one before it ends, positive where it leaves a hole. */
function gapBefore({ from }: VersionSpan, previous: VersionSpan | undefined): number {
  return previous?.before === undefined || from === undefined ? -1 : compareProviderVersions(from, previous.before);
}

/** A version before a release lies where the release lies. */
export function isInRange({ numbers }: Pick<ProviderVersion, 'numbers'>, { spans }: VersionRange): boolean {
  return spans.some(
    ({ from, before }) =>
      (from === undefined || compareProviderVersions(numbers, from) >= 0) &&
      (before === undefined || compareProviderVersions(numbers, before) < 0),
  );
}

/** Whether the range has versions from this one on. */
export function reachesBeyond({ numbers }: Pick<ProviderVersion, 'numbers'>, { spans }: VersionRange): boolean {
  return spans.some(({ before }) => before === undefined || compareProviderVersions(before, numbers) > 0);
}

/** Whether the version precedes a release that begins or ends the range: nobody knows on which side it is. */
export function isAtBoundary({ numbers, isPrerelease }: ProviderVersion, { spans }: VersionRange): boolean {
  const bounds = spans.flatMap(({ from, before }) => [from ?? [], before ?? []]);
  return isPrerelease && bounds.some((bound) => bound.length > 0 && bound.join('.') === numbers.join('.'));
}

/** Where ranges overlap or leave a hole, in words; nothing when they cover every version once, in order. */
export function coverageFaults(ranges: readonly VersionRange[]): readonly string[] {
  const spans = ranges
    .flatMap(({ text, spans: own }) => own.map((span) => ({ text, ...span })))
    .toSorted((one, other) => compareStarts(one, other));
  const faults = spans.slice(1).flatMap((next, index) => gapFault(spans[index], next));
  const [first, last] = [spans[0]?.from, spans.at(-1)?.before];
  return [
    ...(first === undefined ? [] : [`no row covers the versions before ${first.join('.')}`]),
    ...faults,
    ...(last === undefined ? [] : [`no row covers the versions from ${last.join('.')}`]),
    ...(isInOrder(ranges) ? [] : ['rows must be in the order of their first versions']),
  ];
}

function gapFault(
  previous: (VersionSpan & { text: string }) | undefined,
  next: VersionSpan & { text: string },
): readonly string[] {
  const gap = gapBefore(next, previous);
  if (gap === 0 || previous === undefined) {
    return [];
  }
  return gap < 0
    ? [`"${next.text}" overlaps "${previous.text}"`]
    : [`no row covers the versions between "${previous.text}" and "${next.text}"`];
}

function isInOrder(ranges: readonly VersionRange[]): boolean {
  const starts = ranges.map(({ spans: [first = {}] }) => first);
  return starts.every((start, index) => index === 0 || compareStarts(starts[index - 1] ?? {}, start) <= 0);
}

function compareStarts({ from: one }: VersionSpan, { from: other }: VersionSpan): number {
  if (one === undefined || other === undefined) {
    return Number(one !== undefined) - Number(other !== undefined);
  }
  return compareProviderVersions(one, other);
}
