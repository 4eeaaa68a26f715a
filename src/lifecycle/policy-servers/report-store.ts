// Reports on the objects of PolicyServers: for the status controller, and as events when they change.
import { isDeepStrictEqual } from 'node:util';
import type { PolicyServerObject } from '../../resources/index.ts';
import type { EventSink } from '../../runtime/index.ts';
import { OBJECT_REASONS, type PolicyServerReport, type ReportedCondition } from './policy-server-conditions.ts';

export class ReportStore {
  readonly #events: EventSink;
  readonly #reports = new Map<string, PolicyServerReport>();
  readonly #listeners = new Set<(policyServer: string) => void>();

  constructor(events: EventSink) {
    this.#events = events;
  }

  get(policyServer: string): PolicyServerReport | undefined {
    return this.#reports.get(policyServer);
  }

  /** Calls `listener` with the PolicyServer of each changed report. Returns a function that unsubscribes. */
  subscribe(listener: (policyServer: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(server: PolicyServerObject, report: PolicyServerReport): void {
    const name = server.metadata.name ?? '';
    const before = this.#reports.get(name);
    if (isDeepStrictEqual(before, report)) {
      return;
    }
    this.#reports.set(name, report);
    // The status contains the report of the previous leader.
    const known = [...(before?.conditions ?? []), ...(server.status?.conditions ?? [])];
    for (const condition of report.conditions) {
      this.#writeEvent(
        server,
        condition,
        known.find(({ type }) => type === condition.type),
        report.failure?.reason,
      );
    }
    this.#notify(name);
  }

  delete(policyServer: string): void {
    if (this.#reports.delete(policyServer)) {
      this.#notify(policyServer);
    }
  }

  /** Writes an event when a condition fails for a new reason, or recovers. */
  #writeEvent(
    server: PolicyServerObject,
    { type, status, reason, message }: ReportedCondition,
    before: { readonly status: string; readonly reason: string } | undefined,
    failure: string | undefined,
  ): void {
    // The controller itself writes events for failed reconciliations.
    const isReported = reason === OBJECT_REASONS.failed || reason === failure;
    const isNew = before?.status !== 'False' || before.reason !== reason;
    if (status === 'False' && isNew && !isReported) {
      this.#events.event(server, 'Warning', reason, `${type}: ${message}`);
    } else if (status === 'True' && before?.status === 'False') {
      this.#events.event(server, 'Normal', reason, `${type}: succeeded again`);
    }
  }

  #notify(name: string): void {
    for (const listener of this.#listeners) {
      listener(name);
    }
  }
}
