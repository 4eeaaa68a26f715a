// What several auditors know of a kind together (pure).
import { type Counts, type Coverage, judgedState, NO_COUNTS } from '../coverage.ts';
import type { KindSummary } from './member-summary.ts';

/** What another auditor says. `unknown`: nothing yet, as of now. `omitted`: it has more policies than it can tell of. */
export type OtherPart = KindSummary | 'unknown' | 'omitted';

/**
 * The sum of the shares of all auditors. What is the same for each of them, such as a missing right, is as this one knows it. As long as
 * one has not judged its share, the sum is not known.
 */
export function summedCoverage(own: Coverage, others: readonly OtherPart[]): Coverage {
  if (own.state !== 'Scanned' && own.state !== 'Partial' && own.state !== 'Pending') {
    return own;
  }
  const { reason: _reason, message: _message, scannedAt: _at, unlisted: _unlisted, ...rest } = own;
  const told = others.filter((part) => typeof part !== 'string');
  const counts = told.reduce((sum, part) => added(sum, part.counts), own.counts);
  const unlisted = told.reduce((sum, part) => sum + part.unlisted, own.unlisted ?? 0);
  const sum = { ...rest, counts, ...(unlisted === 0 ? {} : { unlisted }) };
  const times = [own.scannedAt, ...told.map((part) => part.scannedAt)].filter((time) => time !== undefined);
  const waiting = others.length + 1 - times.length - others.filter((part) => part === 'omitted').length;
  if (waiting > 0) {
    const message = `${waiting} of ${others.length + 1} auditors have yet to judge the objects of their namespaces`;
    return { ...sum, state: 'Pending', reason: 'NotScanned', message };
  }
  return {
    ...sum,
    ...stateOf(others, counts),
    scannedAt: times.reduce((one, other) => (one < other ? one : other)),
  };
}

function stateOf(others: readonly OtherPart[], counts: Counts): Pick<Coverage, 'state' | 'reason' | 'message'> {
  if (others.includes('omitted')) {
    const message = 'an auditor has more policies than it can tell the others of: run fewer auditors';
    return { state: 'Partial', reason: 'NotSummed', message };
  }
  const failed = others.find(
    (part) => typeof part !== 'string' && part.state !== 'Scanned' && part.state !== 'Partial',
  );
  if (failed !== undefined) {
    return {
      state: 'Failed',
      reason: 'ListFailed',
      message: 'another auditor cannot list these objects: its log says why',
    };
  }
  return judgedState(counts);
}

function added(one: Counts, other: Counts): Counts {
  const names = Object.keys(NO_COUNTS) as (keyof Counts)[];
  return Object.fromEntries(names.map((name) => [name, one[name] + other[name]])) as unknown as Counts;
}
