import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { ApiError, type Cluster, isNotFound, unlessGone } from '../../cluster/index.ts';
import {
  apiVersionOf,
  type ObjectKey,
  type OpenReport,
  REPORT_FORMATS,
  type ReportApi,
  type ReportResult,
  type ResourceType,
  timeText,
} from '../../resources/index.ts';
import {
  type Clock,
  Controller,
  errorKind,
  type Runnable,
  type RuntimeMetrics,
  SYSTEM_CLOCK,
  withWriteBackoff,
} from '../../runtime/index.ts';
import type { AuditFinding, AuditFindings } from '../finding.ts';
import { type AuditShare, WHOLE_CLUSTER } from '../members/audit-share.ts';
import { FollowedReports } from './followed-reports.ts';
import { removeFormerReports } from './former-reports.ts';
import { type ReportChange, reportChanges, type WantedResult } from './report-changes.ts';
import { ReportMetrics } from './report-metrics.ts';
import { reportResult, resultDigest, resultId } from './report-result.ts';
import { REPORT_LABELS } from '../access-rules/report-labels.ts';
import { idOf, reportSource, type StoredResult, summaryOfResults } from './stored-report.ts';

/** Time between a change and the write of its namespace: findings change many at once. Milliseconds. */
const WRITE_DELAY_MS = 2_000;
/** Namespaces that are written at once. */
const CONCURRENCY = 4;
/** AuditFindings that are compared in one turn of the event loop. */
const FINDINGS_PER_TURN = 500;
/** The key of objects without a namespace: no namespace has such a name. */
const NO_NAMESPACE_KEY = '*';
/** The times of results that are only compared. */
const NO_TIME = timeText(0);

export interface ReportWriterOptions {
  /** A client with the rights to read and write reports of all namespaces. */
  readonly cluster: Cluster;
  /** A policy is known to one of them. */
  readonly findings: readonly AuditFindings[];
  /** Whose reports it writes. Default: those of all namespaces. */
  readonly share?: AuditShare;
  readonly registry: Registry;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  readonly clock?: Clock;
  /** Default: OpenReports. */
  readonly format?: ReportApi;
  /** Default: {@link WRITE_DELAY_MS}. */
  readonly writeDelayMs?: number;
}

/** Writes findings as reports, and restores reports that somebody else changed. */
export class ReportWriter implements Runnable {
  readonly name = 'reports';
  readonly #options: ReportWriterOptions;
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #format: ReportApi;
  readonly #share: AuditShare;
  readonly #reports: FollowedReports;
  readonly #clusterReports: FollowedReports;
  readonly #metrics: ReportMetrics;
  readonly #controller: Controller;
  /** Names that reports of others had, by namespace. */
  readonly #taken = new Map<string, Set<string>>();
  /** Most findings of a namespace are the same objects each time. */
  readonly #known = new WeakMap<AuditFinding, WantedResult>();

  constructor(options: ReportWriterOptions) {
    this.#options = options;
    const { cluster, log, registry, metrics, clock = SYSTEM_CLOCK } = options;
    this.#clock = clock;
    this.#share = options.share ?? WHOLE_CLUSTER;
    this.#cluster = withWriteBackoff(cluster, { log, clock });
    const onChange = (namespace: string): void => this.#enqueue(namespace);
    const onServed = (): void => this.#enqueueAll();
    const format = (this.#format = options.format ?? REPORT_FORMATS.openreports);
    const shared = { cluster, format, log, onChange, onServed };
    this.#reports = new FollowedReports({ ...shared, type: format.reports });
    this.#clusterReports = new FollowedReports({ ...shared, type: format.clusterReports });
    this.#metrics = new ReportMetrics(registry, [this.#reports, this.#clusterReports]);
    this.#controller = new Controller({
      name: 'audit-reports',
      concurrency: CONCURRENCY,
      watches: [],
      reconcile: ({ name }, signal) => this.#write(name === NO_NAMESPACE_KEY ? '' : name, signal),
      log,
      clock,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  /** Whether nothing waits to be written. */
  get isIdle(): boolean {
    return this.#controller.isIdle;
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const ends = this.#options.findings.map((one) =>
      one.onChange((namespace) => (namespace === undefined ? this.#enqueueAll() : this.#enqueue(namespace))),
    );
    ends.push(this.#share.onChange(() => this.#enqueueAll()));
    const running = [this.#controller, this.#reports, this.#clusterReports].map((one) => one.start(signal));
    this.#enqueueAll();
    const { cluster, log } = this.#options;
    await Promise.all([...running, removeFormerReports(cluster, this.#format, log, signal)]);
    ends.forEach((end) => end());
  }

  #enqueue(namespace: string): void {
    const { writeDelayMs = WRITE_DELAY_MS } = this.#options;
    this.#controller.enqueue({ name: namespace === '' ? NO_NAMESPACE_KEY : namespace }, { afterMs: writeDelayMs });
  }

  #enqueueAll(): void {
    const { findings } = this.#options;
    const all = [this.#reports, this.#clusterReports, ...findings].flatMap((one) => [...one.namespaces()]);
    new Set(all).forEach((namespace) => this.#enqueue(namespace));
  }

  async #write(namespace: string, signal: AbortSignal): Promise<void> {
    const followed = namespace === '' ? this.#clusterReports : this.#reports;
    if (followed.state !== 'Served' || !this.#share.mayWrite(namespace)) {
      // It is written when the kind is served again, or the share has changed.
      return;
    }
    const wanted = await this.#wanted(namespace);
    const changes = reportChanges(
      followed.of(namespace),
      wanted,
      (result) => this.#stays(result, namespace),
      this.#taken.get(namespace),
    );
    await this.#writeAll(changes, signal, (change) => this.#writeReport(followed, namespace, change, wanted));
  }

  /** One report that another client changed, or whose name is taken, keeps no other one waiting. */
  async #writeAll(
    changes: readonly ReportChange[],
    signal: AbortSignal,
    write: (change: ReportChange) => Promise<void>,
  ): Promise<void> {
    let conflict: unknown;
    for (const change of changes) {
      signal.throwIfAborted();
      try {
        await write(change);
      } catch (error) {
        if (isNamespaceGone(error)) {
          return;
        }
        if (errorKind(error) !== 'conflict') {
          throw error;
        }
        conflict = error;
      }
    }
    if (conflict !== undefined) {
      throw conflict;
    }
  }

  async #wanted(namespace: string): Promise<ReadonlyMap<string, WantedResult>> {
    const wanted = new Map<string, WantedResult>();
    for (const [index, finding] of this.#options.findings.flatMap((one) => [...one.of(namespace)]).entries()) {
      const one = this.#known.get(finding) ?? wantedResult(finding, this.#format);
      this.#known.set(finding, one);
      wanted.set(one.id, one);
      if (index % FINDINGS_PER_TURN === FINDINGS_PER_TURN - 1) {
        await nextTurn();
      }
    }
    return wanted;
  }

  /** What is not judged yet by the policy as it is now may still be so. */
  #stays({ policyUid, group, kind }: StoredResult, namespace: string): boolean {
    const known = this.#options.findings.map((one) => one.knowsPolicy(policyUid));
    const owner = this.#options.findings[known.indexOf(true)];
    return owner === undefined ? known.includes(undefined) : !owner.isSettled(policyUid, { group, kind }, namespace);
  }

  async #writeReport(
    followed: FollowedReports,
    namespace: string,
    { name, ids }: ReportChange,
    wanted: ReadonlyMap<string, WantedResult>,
  ): Promise<void> {
    const { type } = followed;
    const key: ObjectKey = namespace === '' ? { name } : { namespace, name };
    if (!this.#share.mayWrite(namespace)) {
      return;
    }
    const stored = await unlessGone(this.#cluster.get(type, key));
    if (stored !== undefined && !isOurs(stored)) {
      this.#taken.set(namespace, (this.#taken.get(namespace) ?? new Set()).add(name));
      throw ApiError.conflict(
        type,
        name,
        `it has not the labels ${JSON.stringify(REPORT_LABELS)} of reports of the auditor`,
      );
    }
    const results = this.#results(stored?.results ?? [], ids, wanted);
    if (results.length === 0) {
      await this.#delete(followed, key, stored);
      return;
    }
    const report = {
      ...newReport(type, key, stored),
      ...reportSource(this.#format),
      results,
      summary: summaryOfResults(results),
    };
    const written = await (stored === undefined
      ? this.#metrics.counted(type.kind, 'create', this.#cluster.create<OpenReport>(type, report))
      : this.#metrics.counted(type.kind, 'update', this.#cluster.update<OpenReport>(type, report)));
    followed.recordWrite(key, written);
  }

  async #delete(followed: FollowedReports, key: ObjectKey, stored: OpenReport | undefined): Promise<void> {
    if (stored !== undefined) {
      const { uid = '', resourceVersion = '' } = stored.metadata;
      const request = this.#cluster.delete(followed.type, key, { preconditions: { uid, resourceVersion } });
      await this.#metrics.counted(followed.type.kind, 'delete', unlessGone(request));
    }
    followed.recordWrite(key, undefined);
  }

  /** Stored results stay as they are where they say the same. */
  #results(
    stored: readonly ReportResult[],
    ids: ReadonlySet<string>,
    wanted: ReadonlyMap<string, WantedResult>,
  ): readonly ReportResult[] {
    const now = timeText(this.#clock.date());
    const byId = new Map(stored.map((result) => [idOf(result), result]));
    return [...ids].flatMap((id) => {
      const old = byId.get(id);
      const one = wanted.get(id);
      if (one === undefined || (old !== undefined && resultDigest(old) === one.digest)) {
        return old ?? [];
      }
      const times = { firstSeen: firstSeenOf(old) ?? now, lastSeen: now };
      return [reportResult(one.finding, id, times, this.#format)];
    });
  }
}

function wantedResult(finding: AuditFinding, format: ReportApi): WantedResult {
  const id = resultId(finding);
  const digest = resultDigest(reportResult(finding, id, { firstSeen: NO_TIME, lastSeen: NO_TIME }, format));
  return { id, digest, finding };
}

/** What others add to the metadata stays. */
function newReport(type: ResourceType<OpenReport>, key: ObjectKey, stored: OpenReport | undefined): OpenReport {
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { ...(stored?.metadata ?? key), labels: { ...stored?.metadata.labels, ...REPORT_LABELS } },
  };
}

function firstSeenOf(result: ReportResult | undefined): string | undefined {
  const time = result?.properties?.['firstSeen'];
  return time === undefined || Number.isNaN(Date.parse(time)) ? undefined : time;
}

function isOurs({ metadata: { labels = {} } }: OpenReport): boolean {
  return Object.entries(REPORT_LABELS).every(([label, value]) => labels[label] === value);
}

/** Whether a report cannot be written because its namespace, or its kind, ends. */
function isNamespaceGone(error: unknown): boolean {
  const causes = error instanceof ApiError ? (error.details?.causes ?? []) : [];
  return isNotFound(error) || causes.some(({ reason }) => reason === 'NamespaceTerminating');
}
