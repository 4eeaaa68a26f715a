import type { MonitoredReport } from '../../control/index.ts';
import type { MonitoredVerdict } from '../../engine/index.ts';
import { MAX_MONITORED_REQUESTS, type MonitoredRequest } from '../../resources/index.ts';

/** Interval of reports on one policy, so that a thousand rejections a second cost no more than one. Milliseconds. */
export const MONITORED_REPORT_MS = 10_000;
/** Interval between two checks for reports that are due. Milliseconds. */
const TICK_MS = 500;
/**
 * Requests kept for all policies together: 14 MB with the longest texts. Beyond it, the policies with the oldest rejections
 * lose theirs.
 */
export const MAX_KEPT_REQUESTS = 20_000;

/** The count of one policy. */
interface Count {
  /** `metadata.name` of the PolicyRevision. */
  readonly revision: string;
  readonly since: string;
  count: number;
  last: MonitoredRequest[];
  /** Milliseconds since 1970. */
  nextReport: number;
}

export interface MonitoredCountsOptions {
  /** Called with the names of PolicyRevisions whose count is to be reported again. */
  readonly changed: (revisions: readonly string[]) => void;
  /** Default: {@link MONITORED_REPORT_MS}. */
  readonly reportMs?: number;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

/**
 * Counts the requests that each serving revision in monitor mode would have rejected, in this process. Dry runs do not
 * count: tools repeat them all the time.
 */
export class MonitoredCounts {
  readonly #options: MonitoredCountsOptions;
  readonly #now: () => number;
  /** By policy id: the revision in monitor mode that all workers serve. */
  readonly #serving = new Map<string, string>();
  /** By policy id. */
  readonly #counts = new Map<string, Count>();
  /** The counts that have requests, in the order of their last rejections. */
  readonly #recent = new Set<Count>();
  readonly #unreported = new Set<Count>();
  #requests = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MonitoredCountsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * Counts for the revision that serves. Another one, also in protect mode, begins a new count; undefined while workers
   * change over: the verdicts of this moment are not attributed.
   */
  serves(policy: string, revision: { readonly name: string; readonly isMonitored: boolean } | undefined): void {
    this.#serving.delete(policy);
    if (revision === undefined) {
      return;
    }
    if (this.#counts.get(policy)?.revision !== revision.name) {
      this.#drop(policy);
    }
    if (revision.isMonitored) {
      this.#serving.set(policy, revision.name);
    }
  }

  /** Forgets a removed policy. */
  forget(policy: string): void {
    this.#serving.delete(policy);
    this.#drop(policy);
  }

  record(verdict: MonitoredVerdict): void {
    const { policy } = verdict;
    const revision = this.#serving.get(policy);
    if (revision === undefined || verdict.allowed || verdict.isDryRun) {
      return;
    }
    const time = new Date(this.#now()).toISOString();
    const count = this.#counts.get(policy) ?? newCount(revision, time);
    this.#counts.set(policy, count);
    // Moves to the end.
    this.#recent.delete(count);
    this.#recent.add(count);
    count.count += 1;
    count.last.push(requestOf(verdict, time));
    this.#requests += 1;
    if (count.last.length > MAX_MONITORED_REQUESTS) {
      count.last.shift();
      this.#requests -= 1;
    }
    this.#makeRoom();
    this.#unreported.add(count);
    this.#timer ??= setTimeout(() => this.#tick(), TICK_MS).unref();
  }

  /** The count of a policy for one of its revisions; undefined unless this one serves and would have rejected something. */
  report(policy: string, revision: string): MonitoredReport | undefined {
    const count = this.#counts.get(policy);
    return count?.revision === revision ? { since: count.since, count: count.count, last: [...count.last] } : undefined;
  }

  /** Reports everything now, before the process ends. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#reportAll([...this.#unreported]);
  }

  #tick(): void {
    const now = this.#now();
    this.#reportAll([...this.#unreported].filter(({ nextReport }) => nextReport <= now));
    this.#timer = this.#unreported.size === 0 ? undefined : setTimeout(() => this.#tick(), TICK_MS).unref();
  }

  #reportAll(counts: readonly Count[]): void {
    const nextReport = this.#now() + (this.#options.reportMs ?? MONITORED_REPORT_MS);
    for (const count of counts) {
      this.#unreported.delete(count);
      count.nextReport = nextReport;
    }
    if (counts.length > 0) {
      this.#options.changed(counts.map(({ revision }) => revision));
    }
  }

  #drop(policy: string): void {
    const count = this.#counts.get(policy);
    if (count !== undefined) {
      this.#dropRequests(count);
      this.#unreported.delete(count);
      this.#counts.delete(policy);
    }
  }

  #makeRoom(): void {
    for (const count of this.#recent) {
      if (this.#requests <= MAX_KEPT_REQUESTS) {
        return;
      }
      this.#dropRequests(count);
    }
  }

  #dropRequests(count: Count): void {
    this.#recent.delete(count);
    this.#requests -= count.last.length;
    count.last = [];
  }
}

function newCount(revision: string, since: string): Count {
  return { revision, since, count: 0, last: [], nextReport: 0 };
}

function requestOf(
  { operation, kind, namespace, name, user, message }: MonitoredVerdict,
  time: string,
): MonitoredRequest {
  const texts = Object.entries({ operation, kind, namespace, name, user, message });
  return { time, ...Object.fromEntries(texts.filter(([, text]) => text !== undefined && text !== '')) };
}
