// Which reports of a namespace differ from its findings. A result stays in the report that has it, so that a changed finding
// rewrites one report.
import { randomUUID } from 'node:crypto';
import type { AuditFinding } from '../finding.ts';
import type { StoredReport, StoredResult } from './stored-report.ts';

/**
 * Most results of a report. With longest names and messages one is 3 KiB, so that a report stays below the 1.5 MiB of etcd; the usual
 * one, of 700 bytes, makes 170 KiB to write for one changed finding.
 */
export const MAX_REPORT_RESULTS = 250;

const NAME_PREFIX = 'portcullis-';

/** A finding as it is to be stored. */
export interface WantedResult {
  readonly id: string;
  readonly digest: string;
  readonly finding: AuditFinding;
}

/** A report to write; without ids: to delete. */
export interface ReportChange {
  readonly name: string;
  /** Ids of all its results, those that stay included. */
  readonly ids: ReadonlySet<string>;
}

/**
 * @param stays whether a stored result without a finding is kept
 * @param taken names that reports of others have
 */
export function reportChanges(
  stored: readonly StoredReport[],
  wanted: ReadonlyMap<string, WantedResult>,
  stays: (result: StoredResult) => boolean,
  taken: ReadonlySet<string> = new Set(),
): readonly ReportChange[] {
  const placed = new Set<string>();
  const reports: PlannedReport[] = stored
    .toSorted((one, other) => numberOf(nameOf(one)) - numberOf(nameOf(other)) || (nameOf(one) < nameOf(other) ? -1 : 1))
    .map((report) => keptPart(report, { wanted, stays, placed }));
  const added = [...wanted.keys()].filter((id) => !placed.has(id));
  for (const report of [...reports.filter(hasResults), ...reports.filter((one) => !hasResults(one))]) {
    fill(report, added);
  }
  const names = new Set(stored.map(nameOf));
  for (let number = 1; added.length > 0; number += 1) {
    const plain = `${NAME_PREFIX}${number}`;
    if (!names.has(plain)) {
      // Whoever takes all names to hide findings cannot guess this one.
      const name = taken.has(plain) ? `${plain}-${randomUUID()}` : plain;
      const report = { name, ids: new Set<string>(), isChanged: true };
      fill(report, added);
      reports.push(report);
    }
  }
  return reports.filter(({ isChanged }) => isChanged);
}

interface PlannedReport extends ReportChange {
  readonly ids: Set<string>;
  isChanged: boolean;
}

interface Placement {
  readonly wanted: ReadonlyMap<string, WantedResult>;
  readonly stays: (result: StoredResult) => boolean;
  /** Ids that a report has. */
  readonly placed: Set<string>;
}

function keptPart(report: StoredReport, { wanted, stays, placed }: Placement): PlannedReport {
  const ids = new Set<string>();
  let isChanged = !report.isIntact;
  for (const result of report.results) {
    const { id, digest } = result;
    const one = wanted.get(id);
    const isKept =
      id !== '' && !placed.has(id) && ids.size < MAX_REPORT_RESULTS && (one !== undefined || stays(result));
    if (isKept) {
      ids.add(id);
      placed.add(id);
    }
    isChanged ||= !isKept || (one !== undefined && one.digest !== digest);
  }
  return { name: nameOf(report), ids, isChanged: isChanged || ids.size === 0 };
}

/** Moves ids into a report while it has room. */
function fill(report: PlannedReport, added: string[]): void {
  for (const id of added.splice(0, MAX_REPORT_RESULTS - report.ids.size)) {
    report.ids.add(id);
    report.isChanged = true;
  }
}

function hasResults({ ids }: PlannedReport): boolean {
  return ids.size > 0;
}

function nameOf({ metadata: { name = '' } }: StoredReport): string {
  return name;
}

/** Names of others with our labels come last. */
function numberOf(name: string): number {
  const number = Number(name.slice(NAME_PREFIX.length));
  return name.startsWith(NAME_PREFIX) && Number.isInteger(number) ? number : Number.MAX_SAFE_INTEGER;
}
