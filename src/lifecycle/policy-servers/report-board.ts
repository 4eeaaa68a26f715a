// What became of the objects of PolicyServers: for whoever writes statuses, and as events when it differs.
import { isDeepStrictEqual } from 'node:util';
import type { PolicyServer } from '../../resources/index.ts';
import type { EventSink } from '../../runtime/index.ts';
import { OBJECT_REASONS, type PolicyServerReport, type ReportedCondition } from './policy-server-conditions.ts';

export class ReportBoard {
  readonly #events: EventSink;
  readonly #reports = new Map<string, PolicyServerReport>();
  readonly #listeners = new Set<(policyServer: string) => void>();

  constructor(events: EventSink) {
    this.#events = events;
  }

  get(policyServer: string): PolicyServerReport | undefined {
    return this.#reports.get(policyServer);
  }

  /** Tells of reports that differ. Returns what ends it. */
  subscribe(listener: (policyServer: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(server: PolicyServer, report: PolicyServerReport): void {
    const name = server.metadata.name ?? '';
    const before = this.#reports.get(name);
    if (isDeepStrictEqual(before, report)) {
      return;
    }
    this.#reports.set(name, report);
    // What the leader before this one knew is in the status.
    const known = [...(before?.conditions ?? []), ...(server.status?.conditions ?? [])];
    for (const condition of report.conditions) {
      this.#tellOf(
        server,
        condition,
        known.find(({ type }) => type === condition.type),
        report.failure?.reason,
      );
    }
    this.#tell(name);
  }

  delete(policyServer: string): void {
    if (this.#reports.delete(policyServer)) {
      this.#tell(policyServer);
    }
  }

  /** That something is wrong, in another way than before, or right again. */
  #tellOf(
    server: PolicyServer,
    { type, status, reason, message }: ReportedCondition,
    before: { readonly status: string; readonly reason: string } | undefined,
    failure: string | undefined,
  ): void {
    // The controller reports failed reconciliations as events itself.
    const isReported = reason === OBJECT_REASONS.failed || reason === failure;
    const isNew = before?.status !== 'False' || before.reason !== reason;
    if (status === 'False' && isNew && !isReported) {
      this.#events.event(server, 'Warning', reason, `${type}: ${message}`);
    } else if (status === 'True' && before?.status === 'False') {
      this.#events.event(server, 'Normal', reason, `${type}: as it is to be again`);
    }
  }

  #tell(name: string): void {
    for (const listener of this.#listeners) {
      listener(name);
    }
  }
}
