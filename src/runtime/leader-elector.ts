import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { ApiError } from '../cluster/index.ts';
import type { Cluster } from '../cluster/index.ts';
import { knownKind, type KubernetesObject } from '../resources/index.ts';
import { errorText } from '../values/index.ts';
import { pause, SYSTEM_CLOCK } from './clock.ts';
import type { Clock } from './clock.ts';
import { RuntimeError } from './errors.ts';
import type { RuntimeMetrics } from './metrics.ts';
import { withinTime } from './time-limit.ts';

/** `coordination.k8s.io/v1` LeaseSpec. */
export interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  /** RFC 3339 with microseconds. */
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec;
}

export const LEASES = knownKind<Lease>('coordination.k8s.io/v1', 'Lease');

/** How long other processes wait for a leader that does not renew. As kube-controller-manager. Milliseconds. */
const LEASE_DURATION_MS = 15_000;
/** A leader that could not renew for this long stops leading. Milliseconds. */
const RENEW_DEADLINE_MS = 10_000;
/** Interval of attempts to acquire or renew the Lease. Milliseconds. */
const RETRY_PERIOD_MS = 2_000;
/** Processes that wait extend the interval by up to this factor, so that they do not send requests in step. */
const RETRY_JITTER_FACTOR = 1.2;

interface LeaderElectorOptions {
  /** A separate client, so that other traffic does not delay a renewal. */
  readonly cluster: Cluster;
  /** Of the Lease. */
  readonly namespace: string;
  /** Of the Lease. */
  readonly name: string;
  /** The holder identity; unique to this process. Default: host name and a random id. */
  readonly identity?: string;
  /** Default: {@link LEASE_DURATION_MS}. */
  readonly leaseDurationMs?: number;
  /** Default: {@link RENEW_DEADLINE_MS}. */
  readonly renewDeadlineMs?: number;
  /** Default: {@link RETRY_PERIOD_MS}. */
  readonly retryPeriodMs?: number;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  readonly clock?: Clock;
  /** 0 to 1. Default: Math.random. */
  readonly random?: () => number;
}

/**
 * Leader election with a Lease, compatible with client-go's. Clocks of machines need not agree: the times in a Lease
 * are never compared with the local clock, only the moments when the Lease was seen to change.
 *
 * A leader measures its time from when it *sent* the last renewal, so it stops leading before another process can
 * begin. Its work has `leaseDuration - renewDeadline` to stop.
 */
export class LeaderElector {
  readonly identity: string;
  readonly #options: LeaderElectorOptions;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  /** The last observed Lease, and when its spec last changed. */
  #lease: Lease | undefined;
  #observedAt = 0;
  /** When leadership ends without a renewal. */
  #leaderUntil = -Infinity;

  /** @throws RuntimeError 'election-invalid'. */
  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.identity = options.identity ?? `${hostname()}_${randomUUID()}`;
    this.#log = options.log.child({ lease: `${options.namespace}/${options.name}`, identity: this.identity });
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#leaseDurationMs = options.leaseDurationMs ?? LEASE_DURATION_MS;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? RENEW_DEADLINE_MS;
    this.#retryPeriodMs = options.retryPeriodMs ?? RETRY_PERIOD_MS;
    if (this.#leaseDurationMs < 1000 || this.#leaseDurationMs <= this.#renewDeadlineMs) {
      throw new RuntimeError(
        'election-invalid',
        `leaseDurationMs: expected at least 1000 and more than renewDeadlineMs (${this.#renewDeadlineMs}), got ${this.#leaseDurationMs}`,
      );
    }
    if (this.#renewDeadlineMs <= this.#retryPeriodMs * RETRY_JITTER_FACTOR || this.#retryPeriodMs <= 0) {
      throw new RuntimeError(
        'election-invalid',
        `renewDeadlineMs: expected more than ${RETRY_JITTER_FACTOR} times retryPeriodMs (${this.#retryPeriodMs}), got ${this.#renewDeadlineMs}`,
      );
    }
  }

  get isLeader(): boolean {
    return this.#clock.now() < this.#leaderUntil;
  }

  /** The holder identity in the last observed Lease. */
  get holder(): string | undefined {
    return this.#lease?.spec?.holderIdentity;
  }

  /**
   * Acquires leadership and calls `lead`, again after each loss, until `signal` is aborted or `lead` ends by itself.
   * The signal of `lead` is aborted when leadership is lost or `signal` is aborted. In the latter case the Lease is
   * kept until `lead` has ended and is then released, so that the next leader need not wait.
   * @throws RuntimeError 'leadership-lost' when `lead` has not ended before another process may lead; what `lead`
   * throws.
   */
  async run(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { metrics, name } = this.#options;
    metrics?.leading(name, false);
    while (await this.#acquire(signal)) {
      this.#log.info('became the leader');
      metrics?.leading(name, true);
      metrics?.leaderChanged(name, 'acquired');
      try {
        if (!(await this.#leadUntilLost(signal, lead))) {
          return;
        }
      } finally {
        this.#leaderUntil = -Infinity;
        metrics?.leading(name, false);
      }
    }
  }

  /** Tries until it acquires leadership. False if `signal` was aborted first. */
  async #acquire(signal: AbortSignal): Promise<boolean> {
    const random = this.#options.random ?? Math.random;
    let reported: string | undefined;
    while (!signal.aborted) {
      try {
        if ((await this.#tryToHold(signal)) && this.isLeader) {
          return true;
        }
        if (this.holder !== reported) {
          reported = this.holder;
          this.#log.info({ leader: reported }, 'another process leads');
        }
      } catch (error) {
        if (!signal.aborted) {
          this.#log.warn({ error: errorText(error) }, 'leadership could not be acquired');
        }
      }
      await pause(this.#clock, this.#retryPeriodMs * (1 + RETRY_JITTER_FACTOR * random()), signal);
    }
    return false;
  }

  /** True if leadership was lost and the work has stopped. */
  async #leadUntilLost(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const leadership = new AbortController();
    const stop = (): void => leadership.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    const worked = Promise.withResolvers<void>();
    const renewing = new AbortController();
    const lost = this.#renewUntilLost(renewing.signal);
    if (signal.aborted) {
      stop();
    }
    // Promise.try: a synchronous error is handled like a rejection.
    const work = Promise.try(lead, leadership.signal).finally(() => worked.resolve());
    work.catch(() => undefined);
    try {
      const isLost = await Promise.race([lost, worked.promise.then(() => false)]);
      if (!isLost) {
        renewing.abort();
        await lost;
        await this.#release();
        await work;
        return false;
      }
      this.#options.metrics?.leaderChanged(this.#options.name, 'lost');
      this.#log.error({ leader: this.holder }, 'leadership lost');
      leadership.abort(new RuntimeError('leadership-lost', `${this.identity} is no longer the leader`));
      await this.#stopped(worked.promise);
      return true;
    } finally {
      signal.removeEventListener('abort', stop);
      renewing.abort();
    }
  }

  /** Waits for the work to stop, at most until another process may lead. */
  async #stopped(worked: Promise<void>): Promise<void> {
    const late = new AbortController();
    const graceMs = this.#leaseDurationMs - this.#renewDeadlineMs;
    const graceEnd = pause(this.#clock, graceMs, late.signal).then(() => true);
    const isLate = await Promise.race([worked.then(() => false), graceEnd]);
    late.abort();
    if (isLate) {
      throw new RuntimeError(
        'leadership-lost',
        `leadership was lost, and what only a leader may do did not stop within ${graceMs} ms: end this process`,
      );
    }
  }

  /** Renews until it fails (true) or `signal` is aborted (false). */
  async #renewUntilLost(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      await pause(this.#clock, Math.min(this.#retryPeriodMs, this.#leaderUntil - this.#clock.now()), signal);
      if (signal.aborted) {
        return false;
      }
      if (!this.isLeader) {
        return true;
      }
      try {
        if (!(await this.#tryToHold(signal))) {
          return true;
        }
      } catch (error) {
        if (!signal.aborted) {
          this.#log.warn({ error: errorText(error) }, 'leadership could not be renewed');
        }
      }
    }
    return false;
  }

  /** One attempt to acquire or renew. False: another process leads. */
  #tryToHold(signal: AbortSignal): Promise<boolean> {
    // A leader usually sends one request. Others send two, each of which may take as long: they replace it where it could have renewed.
    if (!this.isLeader) {
      return this.#hold(signal);
    }
    const leftMs = this.#leaderUntil - this.#clock.now();
    return withinTime(this.#clock, Math.min(this.#requestMs, leftMs), signal, (limit) => this.#hold(limit));
  }

  /** Half of the renew deadline, so that a request on a dead connection leaves time for another one. Milliseconds. */
  get #requestMs(): number {
    return this.#renewDeadlineMs / 2;
  }

  #request<T>(signal: AbortSignal, send: (limit: AbortSignal) => Promise<T>): Promise<T> {
    return withinTime(this.#clock, this.#requestMs, signal, send);
  }

  async #hold(signal: AbortSignal): Promise<boolean> {
    if (this.isLeader && this.#lease !== undefined) {
      // A leader knows its Lease; a read before each renewal would double the requests.
      try {
        return await this.#write(this.#lease, signal);
      } catch (error) {
        if (!(error instanceof ApiError) || (error.reason !== 'Conflict' && error.reason !== 'NotFound')) {
          throw error;
        }
      }
    }
    const { cluster, namespace, name } = this.#options;
    let lease: Lease;
    try {
      lease = await this.#request(signal, (limit) => cluster.get(LEASES, { namespace, name }, { signal: limit }));
    } catch (error) {
      if (error instanceof ApiError && error.reason === 'NotFound') {
        // The previous holder may not have noticed yet that the Lease was deleted.
        return this.#isFree() && this.#write(undefined, signal);
      }
      throw error;
    }
    this.#observe(lease);
    return this.#isFree() && this.#write(lease, signal);
  }

  /** Whether the Lease has no holder, is ours, or was not renewed for its whole duration since we observed it. */
  #isFree(): boolean {
    const { holderIdentity = '', leaseDurationSeconds = 0 } = this.#lease?.spec ?? {};
    return (
      holderIdentity === '' ||
      holderIdentity === this.identity ||
      this.#observedAt + leaseDurationSeconds * 1000 <= this.#clock.now()
    );
  }

  #observe(lease: Lease): void {
    // A change of metadata alone is not a renewal.
    if (this.#lease === undefined || !isDeepStrictEqual(this.#lease.spec, lease.spec)) {
      this.#observedAt = this.#clock.now();
    }
    this.#lease = lease;
  }

  /** Writes this process as the holder. False: another process was faster. */
  async #write(lease: Lease | undefined, signal: AbortSignal): Promise<boolean> {
    const { cluster, namespace, name } = this.#options;
    const sentAt = this.#clock.now();
    const now = microTime(this.#clock.date());
    const old = lease?.spec;
    const isOurs = old?.holderIdentity === this.identity;
    const spec: LeaseSpec = {
      ...old,
      holderIdentity: this.identity,
      leaseDurationSeconds: Math.ceil(this.#leaseDurationMs / 1000),
      acquireTime: isOurs ? (old.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (old?.leaseTransitions ?? 0) + (isOurs || lease === undefined ? 0 : 1),
    };
    try {
      const written = await this.#request(signal, (limit) =>
        lease === undefined
          ? cluster.create<Lease>(LEASES, { ...LEASE_HEAD, metadata: { namespace, name }, spec }, { signal: limit })
          : cluster.update<Lease>(LEASES, { ...lease, ...LEASE_HEAD, spec }, { signal: limit }),
      );
      this.#observe(written);
    } catch (error) {
      const isRace = error instanceof ApiError && (error.reason === 'Conflict' || error.reason === 'AlreadyExists');
      // A leader reads the Lease again to find the writer; another process has lost the race.
      if (isRace && !this.isLeader) {
        return false;
      }
      throw error;
    }
    if (!signal.aborted) {
      this.#leaderUntil = sentAt + this.#renewDeadlineMs;
    }
    return true;
  }

  /** Releases the Lease. If that fails, it expires. */
  async #release(): Promise<void> {
    const lease = this.#lease;
    this.#leaderUntil = -Infinity;
    if (lease === undefined) {
      return;
    }
    const { cluster, metrics, name } = this.#options;
    const now = microTime(this.#clock.date());
    const spec: LeaseSpec = {
      ...lease.spec,
      holderIdentity: '',
      leaseDurationSeconds: 1,
      acquireTime: now,
      renewTime: now,
    };
    try {
      const { signal } = new AbortController();
      const released = await withinTime(this.#clock, this.#retryPeriodMs, signal, (limit) =>
        cluster.update<Lease>(LEASES, { ...lease, spec }, { signal: limit }),
      );
      this.#observe(released);
      metrics?.leaderChanged(name, 'released');
      this.#log.info('gave up leadership');
    } catch (error) {
      this.#log.warn({ error: errorText(error) }, 'leadership not given up, it will expire');
    }
  }
}

const LEASE_HEAD = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };

/** `metav1.MicroTime` */
function microTime(date: number): string {
  return `${new Date(date).toISOString().slice(0, -1)}000Z`;
}
