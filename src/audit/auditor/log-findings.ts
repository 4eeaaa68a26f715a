import type { Logger } from '../../log/index.ts';
import type { Counts } from '../coverage.ts';
import type { Auditor } from './auditor.ts';

/** Logs the state of each policy's audit whenever all its kinds are scanned with other counts than before. */
export function logFindings(auditor: Pick<Auditor, 'coverage' | 'onCoverage'>, log: Logger): void {
  const logged = new Map<string, string>();
  auditor.onCoverage((id) => {
    const coverage = auditor.coverage(id);
    if (coverage === undefined) {
      logged.delete(id);
      return;
    }
    const sum = (of: (counts: Counts) => number): number =>
      coverage.reduce((total, { counts }) => total + of(counts), 0);
    const incomplete = coverage
      .filter(({ state }) => state !== 'Scanned')
      .map(({ kind, state }) => `${kind?.resource ?? '*'} ${state}`);
    const fields = {
      policy: coverage[0]?.policy ?? id,
      failed: sum(({ failed }) => failed),
      wouldChange: sum(({ wouldChange }) => wouldChange),
      unjudged: sum(({ unjudged }) => unjudged),
      ...(incomplete.length === 0 ? {} : { incomplete: incomplete.join(', ') }),
    };
    const text = JSON.stringify(fields);
    if (!coverage.some(({ state }) => state === 'Pending') && logged.get(id) !== text) {
      logged.set(id, text);
      log.info(fields, 'audited');
    }
  });
}
