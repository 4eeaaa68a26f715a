import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import { type AuditAbsence, groupResourceOf, type OwnKind } from '../../resources/index.ts';
import { aborted, type Clock, type Lease, LEASES, pause, type Runnable, SYSTEM_CLOCK } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { REPORT_SELECTOR } from '../access-rules/report-labels.ts';
import { unreadReasons } from './unread-policies.ts';

/** How often Leases of auditors are read: less often than any of them is renewed. Milliseconds. */
const POLL_MS = 30_000;
/** How long Leases may stay as they are: longer than an auditor takes to start anew. Milliseconds. */
const PATIENCE_MS = 120_000;
/** The same for auditors with long leases, in their durations. */
const PATIENCE_LEASES = 4;

export interface AuditorPresenceOptions {
  readonly cluster: Pick<Cluster, 'list'>;
  /** Of the Leases. */
  readonly namespace: string;
  /** False: there is none, and Leases are not read. */
  readonly isExpected: boolean;
  readonly log: Logger;
  readonly registry?: Registry;
  /** Default: that of the machine. */
  readonly clock?: Clock;
}

/** What was read last. */
interface Heard {
  /** By name. */
  readonly specs: ReadonlyMap<string, Lease['spec']>;
  readonly at: number;
  /** When these were first read. Milliseconds since 1970. */
  readonly since: number;
  /** For how long they have been read without a change. */
  readonly silentMs: number;
  /** Reasons by resources of policies that auditors cannot read. */
  readonly unread: ReadonlyMap<string, string>;
}

/**
 * Whether an auditor works, by whether a Lease of one changes. Clocks of auditors need not be right: what counts is when a change was
 * read here.
 */
export class AuditorPresence implements Runnable {
  readonly name = 'auditor-presence';
  readonly #options: AuditorPresenceOptions;
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #heard: Heard | undefined;
  #absence: AuditAbsence | undefined;
  #lastError: string | undefined;

  constructor(options: AuditorPresenceOptions) {
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    const isAbsent = (): boolean => this.#absence !== undefined;
    if (options.registry !== undefined && options.isExpected) {
      options.registry.registerMetric(
        new Gauge({
          name: 'portcullis_auditor_absent',
          help: '1 while no auditor works, as the leading controller sees it',
          registers: [],
          collect() {
            this.set(isAbsent() ? 1 : 0);
          },
        }),
      );
    }
  }

  /** Why no auditor works, or judges by policies of a kind; undefined: one does, or that is not known. */
  absence(kind?: OwnKind): AuditAbsence | undefined {
    return this.#absence ?? (kind && this.#heard && unreadKind(kind, this.#heard));
  }

  /** Called when {@link absence} may differ. Returns how to end that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    if (!this.#options.isExpected) {
      this.#tell({ since: this.#clock.date() });
      await aborted(signal);
    }
    while (!signal.aborted) {
      await this.#look(signal);
      await pause(this.#clock, POLL_MS, signal);
    }
    this.#absence = undefined;
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { cluster, namespace, log } = this.#options;
    try {
      const { items } = await cluster.list<Lease>(LEASES, { namespace, labelSelector: REPORT_SELECTOR, signal });
      this.#lastError = undefined;
      this.#hear(items);
    } catch (error) {
      const text = errorText(error);
      if (!signal.aborted && text !== this.#lastError) {
        log.warn({ error: text }, 'whether an auditor works is not known, trying again');
      }
      this.#lastError = text;
    }
  }

  #hear(leases: readonly Lease[]): void {
    const [at, before] = [this.#clock.now(), this.#heard];
    const specs = new Map(leases.map(({ metadata: { name = '' }, spec }) => [name, spec]));
    const isSame = before !== undefined && isDeepStrictEqual(before.specs, specs);
    // Time in which nothing could be read, or this process did not run, is no silence.
    const silentMs = isSame ? before.silentMs + Math.min(at - before.at, 2 * POLL_MS) : 0;
    const living = leases.filter(
      ({ metadata: { name = '' }, spec }) => before !== undefined && !isDeepStrictEqual(before.specs.get(name), spec),
    );
    const since = isSame ? before.since : this.#clock.date();
    this.#heard = { specs, at, since, silentMs, unread: unreadReasons(living) };
    const isAbsent = silentMs >= patienceMs(leases);
    const isUnreadChanged = !isDeepStrictEqual(before?.unread ?? new Map(), this.#heard.unread);
    if (isAbsent !== (this.#absence !== undefined) || isUnreadChanged) {
      this.#tell(isAbsent ? { since } : undefined);
    }
  }

  #tell(absence: AuditAbsence | undefined): void {
    const { log, isExpected } = this.#options;
    if (isExpected && absence !== undefined) {
      log.warn('no auditor works: what policies say about existing objects is not known');
    } else if (this.#absence !== undefined) {
      log.info('an auditor works again');
    }
    this.#absence = absence;
    this.#listeners.forEach((listener) => listener());
  }
}

function patienceMs(leases: readonly Lease[]): number {
  const longest = Math.max(0, ...leases.map(({ spec }) => spec?.leaseDurationSeconds ?? 0));
  return Math.max(PATIENCE_MS, PATIENCE_LEASES * longest * 1_000);
}

function unreadKind(kind: OwnKind, { since, unread }: Heard): AuditAbsence | undefined {
  const { group, resource } = kind;
  const reason = unread.get(resource);
  if (reason === undefined) {
    return undefined;
  }
  const message = `the auditor cannot read ${groupResourceOf(kind)}`;
  const missingRule = { apiGroups: [group], resources: [resource], verbs: ['get', 'list', 'watch'] };
  const kinds = reason === 'Forbidden' ? [{ state: reason, reason, message, missingRule } as const] : [];
  return { since, because: { reason, message, kinds } };
}
