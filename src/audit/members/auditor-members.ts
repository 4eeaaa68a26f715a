// Auditors that share a cluster: each has a Lease, and from all Leases follows which namespaces are whose.
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster, isNotFound, unlessGone } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import {
  type Clock,
  type Lease,
  LEASES,
  pause,
  type Runnable,
  type RuntimeMetrics,
  SYSTEM_CLOCK,
  withinTime,
} from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { REPORT_SELECTOR } from '../access-rules/report-labels.ts';
import type { AuditShare, ShareChange } from './audit-share.ts';
import { isReleased, memberIdOf, memberLease, releasedLease } from './member-lease.ts';
import { ownerOfNamespace } from './owner-of-namespace.ts';

/** Leases of auditors that have been dead for this many lease durations are deleted. */
const FORGOTTEN_AFTER = 10;
const CONFLICT = 409;
/** The name in `leader_election_master_status`. */
const METRIC_NAME = 'portcullis-auditor';

export interface AuditorMembersOptions {
  /** A separate client, so that other traffic does not delay a renewal. */
  readonly cluster: Pick<Cluster, 'get' | 'list' | 'create' | 'update' | 'delete'>;
  /** Of the Leases. */
  readonly namespace: string;
  /** How long others wait for a silent auditor. Milliseconds. */
  readonly leaseDurationMs: number;
  /** An auditor that could not renew its Lease for this long writes nothing. Milliseconds, less than `leaseDurationMs`. */
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Of this process, 8 hexadecimal digits. Default: random. */
  readonly id?: string;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  readonly clock?: Clock;
}

/** Another auditor. */
interface OtherMember {
  readonly id: string;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Observed {
  readonly lease: Lease;
  /** When its spec was first seen as it is. */
  readonly at: number;
}

/**
 * The auditors of a cluster, of which this process is one. Clocks of machines need not agree: a Lease is dead when it was read twice
 * without a renewal in between, its whole duration apart.
 *
 * No two auditors may write about a namespace at once. One that dies stops writing `renewDeadlineMs` after its last renewal was *sent*,
 * and others wait for longer. One that comes writes after `renewDeadlineMs`: by then each other one has read its Lease, or could not read
 * Leases for that long and writes nothing.
 */
export class AuditorMembers implements AuditShare, Runnable {
  readonly name = 'members';
  readonly ready: Promise<void>;
  readonly id: string;
  /** Annotations of the Lease, as of each renewal. */
  annotations: () => Readonly<Record<string, string>> = () => ({});
  readonly #options: AuditorMembersOptions;
  readonly #clock: Clock;
  readonly #joined = Promise.withResolvers<void>();
  readonly #listeners = new Set<(change: ShareChange) => void>();
  readonly #othersListeners = new Set<() => void>();
  /** By id. */
  #observed: ReadonlyMap<string, Observed> = new Map();
  #lease: Lease | undefined;
  /** Ids of live members, this one included. */
  #members: readonly string[] = [];
  readonly #owners = new Map<string, string>();
  #writesFrom = Infinity;
  #writesUntil = -Infinity;
  #wrote = false;

  constructor(options: AuditorMembersOptions) {
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.id = options.id ?? randomBytes(4).toString('hex');
    this.ready = this.#joined.promise;
  }

  isOwn(namespace: string): boolean {
    if (this.#members.length === 0) {
      return false;
    }
    const owner = this.#owners.get(namespace) ?? ownerOfNamespace(namespace, this.#members);
    this.#owners.set(namespace, owner);
    return owner === this.id;
  }

  mayWrite(namespace: string): boolean {
    const now = this.#clock.now();
    return this.#writesFrom <= now && now < this.#writesUntil && this.isOwn(namespace);
  }

  onChange(listener: (change: ShareChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Called when annotations of another auditor changed. Returns how to end that. */
  onOthers(listener: () => void): () => void {
    this.#othersListeners.add(listener);
    return () => this.#othersListeners.delete(listener);
  }

  /** The ids of all live members, in order: two auditors with the same ones agree on all namespaces. */
  get members(): readonly string[] {
    return this.#members;
  }

  get others(): readonly OtherMember[] {
    return this.#members.flatMap((id) => {
      const annotations = this.#observed.get(id)?.lease.metadata.annotations;
      return id === this.id ? [] : [{ id, annotations: annotations ?? {} }];
    });
  }

  /** Runs until `signal` is aborted, and releases the Lease: what writes has to have ended by then. */
  async start(signal: AbortSignal): Promise<void> {
    const { log, retryPeriodMs, renewDeadlineMs } = this.#options;
    while (!signal.aborted) {
      try {
        // Half of it, so that a request on a dead connection leaves time for another one.
        await withinTime(this.#clock, renewDeadlineMs / 2, signal, (limit) => this.#renew(limit));
      } catch (error) {
        if (!signal.aborted) {
          log.warn({ error: errorText(error) }, 'the Leases of auditors cannot be renewed or read, trying again');
        }
      }
      this.#noteWriting();
      await pause(this.#clock, retryPeriodMs, signal);
    }
    await this.#leave();
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { namespace, cluster, renewDeadlineMs } = this.#options;
    const sentAt = this.#clock.now();
    const isMember = this.#lease !== undefined && sentAt < this.#writesUntil;
    await this.#write(signal);
    const { items } = await cluster.list(LEASES, { namespace, labelSelector: REPORT_SELECTOR, signal });
    signal.throwIfAborted();
    const now = this.#clock.now();
    this.#observe(items, isMember, now);
    this.#writesUntil = sentAt + renewDeadlineMs;
    if (!isMember) {
      // Who comes later reads this Lease at once.
      this.#writesFrom = this.#members.length === 1 ? now : now + renewDeadlineMs;
    }
    await this.#forget(signal);
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { cluster, namespace, leaseDurationMs } = this.#options;
    const { id, annotations } = this;
    const before = this.#lease;
    const member = { namespace, id, holder: `${hostname()}_${id}`, leaseDurationMs, renewedAt: this.#clock.date() };
    const lease = memberLease({ ...member, annotations: annotations() }, before);
    try {
      const options = { signal };
      const written = await (before === undefined
        ? cluster.create(LEASES, lease, options)
        : cluster.update(LEASES, lease, options));
      signal.throwIfAborted();
      this.#lease = written;
    } catch (error) {
      if (error instanceof ApiError && (isNotFound(error) || error.code === CONFLICT)) {
        this.#lease = await unlessGone(cluster.get(LEASES, { namespace, name: lease.metadata.name ?? '' }, { signal }));
        // Without it this one does not count for those who come.
        this.#writesUntil = this.#lease === undefined ? -Infinity : this.#writesUntil;
      }
      throw error;
    }
  }

  #observe(leases: readonly Lease[], isMember: boolean, now: number): void {
    const observed = new Map<string, Observed>();
    // A Lease that somebody deleted counts until it would have expired.
    for (const [id, one] of this.#observed) {
      if (!isReleased(one.lease) && deadFor(one, now) < 0) {
        observed.set(id, one);
      }
    }
    for (const lease of leases) {
      const id = memberIdOf(lease);
      if (id !== undefined) {
        const before = this.#observed.get(id);
        // After an outage others have had no time to renew theirs, either.
        const isRenewed = !isMember || before === undefined || !isDeepStrictEqual(before.lease.spec, lease.spec);
        observed.set(id, { lease, at: isRenewed ? now : before.at });
      }
    }
    const isTold = [...observed].some(
      ([id, { lease }]) => id !== this.id && !hasSameAnnotations(lease, this.#observed.get(id)),
    );
    this.#observed = observed;
    const living = [...observed].filter(([, one]) => !isReleased(one.lease) && deadFor(one, now) < 0);
    const ids = new Set([...living.map(([id]) => id), this.id]);
    this.#setMembers([...ids].toSorted((one, other) => (one < other ? -1 : 1)));
    if (isTold) {
      this.#othersListeners.forEach((listener) => listener());
    }
  }

  #setMembers(members: readonly string[]): void {
    const before = this.#members;
    if (isDeepStrictEqual(before, members)) {
      return;
    }
    this.#members = members;
    this.#owners.clear();
    this.#joined.resolve();
    this.#options.log.info({ id: this.id, auditors: members.length }, 'the auditors of this cluster have changed');
    const hasGained = before.length === 0 || before.some((id) => !members.includes(id));
    this.#tell(hasGained ? 'gained' : 'lost');
  }

  #noteWriting(): void {
    const now = this.#clock.now();
    const writes = this.#writesFrom <= now && now < this.#writesUntil;
    if (writes !== this.#wrote) {
      this.#wrote = writes;
      this.#tell('writing');
    }
    this.#options.metrics?.leading(METRIC_NAME, this.mayWrite(''));
  }

  #tell(change: ShareChange): void {
    this.#listeners.forEach((listener) => listener(change));
  }

  /** Deletes Leases of auditors that ended without doing so, some time ago. */
  async #forget(signal: AbortSignal): Promise<void> {
    const { cluster } = this.#options;
    for (const one of this.mayWrite('') ? this.#observed.values() : []) {
      const { namespace = '', name = '', uid = '', resourceVersion = '' } = one.lease.metadata;
      if (deadFor(one, this.#clock.now()) > (FORGOTTEN_AFTER - 1) * durationMs(one)) {
        const options = { preconditions: { uid, resourceVersion }, signal };
        await unlessGone(cluster.delete(LEASES, { namespace, name }, options));
      }
    }
  }

  async #leave(): Promise<void> {
    const { cluster, log, metrics, retryPeriodMs } = this.#options;
    this.#writesUntil = -Infinity;
    metrics?.leading(METRIC_NAME, false);
    const lease = this.#lease;
    if (lease === undefined) {
      return;
    }
    try {
      const { signal } = new AbortController();
      await withinTime(this.#clock, retryPeriodMs, signal, (limit) =>
        cluster.update(LEASES, releasedLease(lease), { signal: limit }),
      );
    } catch (error) {
      log.warn({ error: errorText(error) }, 'the Lease of this auditor was not released, it will expire');
    }
  }
}

function hasSameAnnotations({ metadata }: Lease, before: Observed | undefined): boolean {
  return isDeepStrictEqual(metadata.annotations, before?.lease.metadata.annotations);
}

function durationMs({ lease }: Observed): number {
  return (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
}

/** Since when a Lease has expired. Milliseconds; negative: it has not. */
function deadFor(one: Observed, now: number): number {
  return now - one.at - durationMs(one);
}
