import type { RevisionReport } from '../replica-protocol.ts';
import type { ReportSource } from '../report-source.ts';

/** Reports that a test sets. */
export class TestReports implements ReportSource {
  isSynced: boolean;
  readonly #reports = new Map<string, RevisionReport>();
  readonly #listeners = new Set<(names: readonly string[]) => void>();

  constructor({ isSynced = true } = {}) {
    this.isSynced = isSynced;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  reports(): Iterable<RevisionReport> {
    return this.#reports.values();
  }

  report(name: string): RevisionReport | undefined {
    return this.#reports.get(name);
  }

  subscribe(listener: (names: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Sets reports. */
  set(...reports: readonly RevisionReport[]): void {
    for (const report of reports) {
      this.#reports.set(report.name, report);
    }
    this.notify(reports.map(({ name }) => name));
  }

  delete(name: string): void {
    this.#reports.delete(name);
    this.notify([name]);
  }

  sync(): void {
    this.isSynced = true;
    this.notify([]);
  }

  notify(names: readonly string[] = []): void {
    for (const listener of this.#listeners) {
      listener(names);
    }
  }
}

/** A report of the first revision of a policy. */
export function reportOf(policy: string, rest: Partial<RevisionReport> = {}): RevisionReport {
  return { name: `${policy}-1`, uid: `uid-${policy}`, policy, revision: 1, state: 'Serving', ...rest };
}
