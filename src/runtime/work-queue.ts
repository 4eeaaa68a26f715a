import type { Clock } from './clock.ts';
import { SYSTEM_CLOCK } from './clock.ts';
import { Heap } from './heap.ts';
import type { HeapItem } from './heap.ts';
import { OwnerTurns } from './owner-turns.ts';
import { TokenBucket } from './token-bucket.ts';
import type { TokenBucketOptions } from './token-bucket.ts';

/** Default priority. Higher priorities are taken first. */
export const DEFAULT_PRIORITY = 0;
/** Priority of the objects of a first list: changes overtake them. */
export const LOW_PRIORITY = -100;

/** Delay of the first retry: most failures are conflicts that are gone by then. As client-go. Milliseconds. */
const RETRY_BASE_MS = 5;
/** Longest delay of a retry: after a long outage, recovery takes minutes. As client-go. Milliseconds. */
export const RETRY_CAP_MS = 1_000_000;
/** Random part of a delay, so that items that failed together are not retried together. */
export const RETRY_JITTER = 0.25;
/** Rate of retries of all items, so that a thousand failing objects do not flood an API server. As client-go. */
const RETRY_RATE: TokenBucketOptions = { perSecond: 10, burst: 100 };
/** Limits the exponent: 2 ** 40 times the base exceeds every cap. */
const MAX_DOUBLINGS = 40;

/** Hooks for metrics. Times in seconds. */
export interface WorkQueueObserver {
  /** A new item was added. */
  added(): void;
  /** An item was taken. */
  taken(waitedSeconds: number): void;
  /** An item was done. */
  done(workedSeconds: number): void;
  /** An item will be retried. */
  retried(): void;
}

export interface WorkQueueOptions {
  readonly baseMs?: number;
  readonly capMs?: number;
  readonly rate?: TokenBucketOptions;
  readonly observer?: WorkQueueObserver;
  readonly clock?: Clock;
  /** 0 to 1. Default: Math.random. */
  readonly random?: () => number;
  /** Owner of an item, such as its namespace; undefined: the item is its own. Owners take turns. Default: items in their order. */
  readonly ownerOf?: (item: string) => string | undefined;
}

export interface AddOptions {
  /** Default: {@link DEFAULT_PRIORITY}. An item that already waits keeps the higher priority. */
  readonly priority?: number;
  /** Delay before the item is ready. An item that already waits keeps the earlier time. Default: 0. */
  readonly afterMs?: number;
}

/** An item that waits: delayed, or ready to be taken. */
interface Entry<T> extends HeapItem {
  readonly item: T;
  priority: number;
  /** When it becomes ready. */
  readyAt: number;
  /** Order among items of one priority, see {@link OwnerTurns}. */
  turn: number;
  /** Order among items of one turn. */
  order: number;
  isReady: boolean;
}

/**
 * A queue of items. An item is in the queue once, and one taker works on it at a time: if it is added meanwhile, it
 * returns to the queue afterwards. {@link retry} adds failed items with growing delays.
 */
export class WorkQueue<T extends string = string> {
  readonly #clock: Clock;
  readonly #observer: WorkQueueObserver | undefined;
  readonly #baseMs: number;
  readonly #capMs: number;
  readonly #bucket: TokenBucket;
  readonly #random: () => number;
  readonly #waiting = new Map<T, Entry<T>>();
  /** Each waiting item is in one of these two. */
  readonly #delayed = new Heap<Entry<T>>((a, b) => a.readyAt < b.readyAt);
  readonly #ready = new Heap<Entry<T>>((a, b) =>
    a.priority === b.priority ? a.turn < b.turn || (a.turn === b.turn && a.order < b.order) : a.priority > b.priority,
  );
  /** Start times of the items that takers work on. */
  readonly #taken = new Map<T, number>();
  /** Items that were added while a taker works on them. */
  readonly #again = new Map<T, { readonly priority: number; readonly readyAt: number }>();
  readonly #failures = new Map<T, number>();
  readonly #takers: ((item: T | undefined) => void)[] = [];
  readonly #drained = Promise.withResolvers<void>();
  #timer: { readonly at: number; readonly cancel: () => void } | undefined;
  readonly #turns: OwnerTurns;
  /** Number of entries so far. */
  #order = 0;
  #isShutDown = false;

  constructor(options: WorkQueueOptions = {}) {
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#observer = options.observer;
    this.#baseMs = options.baseMs ?? RETRY_BASE_MS;
    this.#capMs = options.capMs ?? RETRY_CAP_MS;
    this.#bucket = new TokenBucket(options.rate ?? RETRY_RATE);
    this.#random = options.random ?? Math.random;
    this.#turns = new OwnerTurns(options.ownerOf ?? (() => undefined));
  }

  /** Number of ready items. */
  get depth(): number {
    return this.#ready.size;
  }

  /** Number of delayed items. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** Number of items that takers work on. */
  get active(): number {
    return this.#taken.size;
  }

  /** Longest time that a taker has worked on its current item. Milliseconds. */
  get longestRunningMs(): number {
    const [first] = this.#taken.values();
    return first === undefined ? 0 : this.#clock.now() - first;
  }

  /** Total time that takers have worked on their current items. Milliseconds. */
  get unfinishedMs(): number {
    const now = this.#clock.now();
    return this.#taken.values().reduce((sum, since) => sum + now - since, 0);
  }

  /** Adds an item. Ignored after {@link shutDown}. */
  add(item: T, { priority = DEFAULT_PRIORITY, afterMs = 0 }: AddOptions = {}): void {
    if (this.#isShutDown) {
      return;
    }
    const readyAt = this.#clock.now() + Math.max(afterMs, 0);
    const known = this.#taken.has(item) ? this.#again.get(item) : this.#waiting.get(item);
    if (known === undefined) {
      this.#observer?.added();
    }
    const wanted = {
      priority: Math.max(priority, known?.priority ?? priority),
      readyAt: Math.min(readyAt, known?.readyAt ?? readyAt),
    };
    if (this.#taken.has(item)) {
      this.#again.set(item, wanted);
    } else {
      this.#enter(item, wanted.priority, wanted.readyAt);
    }
  }

  /**
   * Adds an item that failed: after `afterMs` if given, else with a delay that grows until {@link forget}, at the
   * queue's rate.
   */
  retry(item: T, { priority = DEFAULT_PRIORITY, afterMs }: AddOptions = {}): void {
    const failures = this.#failures.get(item) ?? 0;
    this.#failures.set(item, failures + 1);
    this.#observer?.retried();
    if (afterMs !== undefined) {
      this.add(item, { priority, afterMs });
      return;
    }
    const bound = Math.min(this.#capMs, this.#baseMs * 2 ** Math.min(failures, MAX_DOUBLINGS));
    const backoffMs = bound * (1 - RETRY_JITTER * this.#random());
    const rateMs = this.#bucket.reserve(this.#clock.now());
    this.add(item, { priority, afterMs: Math.max(backoffMs, rateMs) });
  }

  /** Resets the failures of an item. */
  forget(item: T): void {
    this.#failures.delete(item);
  }

  /** Consecutive failures of an item. */
  failures(item: T): number {
    return this.#failures.get(item) ?? 0;
  }

  /**
   * Resolves with the next item when one is ready; {@link done} must follow. Resolves with undefined after the queue
   * was shut down and drained.
   */
  take(): Promise<T | undefined> {
    this.#promote();
    const entry = this.#ready.pop();
    if (entry !== undefined) {
      return Promise.resolve(this.#hand(entry));
    }
    if (this.#isShutDown && this.#again.size === 0) {
      return Promise.resolve(undefined);
    }
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** Ends the work on an item, failed or not. */
  done(item: T): void {
    const since = this.#taken.get(item);
    if (since === undefined) {
      return;
    }
    this.#taken.delete(item);
    this.#observer?.done((this.#clock.now() - since) / 1000);
    const again = this.#again.get(item);
    if (again !== undefined) {
      this.#again.delete(item);
      this.#enter(item, again.priority, again.readyAt);
    }
    this.#endIfDrained();
  }

  /** Rejects new items, drops delayed ones, and still hands out ready ones. Resolves when all those are done. */
  shutDown(): Promise<void> {
    if (!this.#isShutDown) {
      this.#promote();
      this.#serve();
      this.#isShutDown = true;
      this.#timer?.cancel();
      for (let entry = this.#delayed.pop(); entry !== undefined; entry = this.#delayed.pop()) {
        this.#waiting.delete(entry.item);
      }
      for (const [item, { readyAt }] of this.#again) {
        if (readyAt > this.#clock.now()) {
          this.#again.delete(item);
        }
      }
      this.#endIfDrained();
    }
    return this.#drained.promise;
  }

  /** Adds or moves a waiting item; a ready item keeps its turn. */
  #enter(item: T, priority: number, readyAt: number): void {
    const old = this.#waiting.get(item);
    if (old !== undefined && old.priority === priority && old.readyAt === readyAt) {
      return;
    }
    if (old !== undefined) {
      (old.isReady ? this.#ready : this.#delayed).remove(old);
    }
    const isReady = readyAt <= this.#clock.now();
    const wasReady = old?.isReady === true;
    const turn = wasReady ? old.turn : isReady ? this.#turns.assign(item) : 0;
    const order = wasReady ? old.order : this.#order++;
    const entry: Entry<T> = { item, priority, readyAt, turn, order, isReady, position: 0 };
    this.#waiting.set(item, entry);
    if (isReady) {
      this.#ready.push(entry);
      this.#serve();
    } else {
      this.#delayed.push(entry);
      this.#setTimer();
    }
  }

  /** Moves delayed items whose time has come to the ready ones. */
  #promote(): void {
    const now = this.#clock.now();
    for (let entry = this.#delayed.peek(); entry !== undefined && entry.readyAt <= now; entry = this.#delayed.peek()) {
      this.#delayed.remove(entry);
      entry.isReady = true;
      entry.turn = this.#turns.assign(entry.item);
      entry.order = this.#order++;
      this.#ready.push(entry);
    }
  }

  /** Hands ready items to waiting takers. */
  #serve(): void {
    while (this.#takers.length > 0) {
      const entry = this.#ready.pop();
      if (entry === undefined) {
        return;
      }
      this.#takers.shift()?.(this.#hand(entry));
    }
  }

  #hand({ item, readyAt, turn }: Entry<T>): T {
    const now = this.#clock.now();
    this.#turns.taken(item, turn);
    this.#waiting.delete(item);
    this.#taken.set(item, now);
    this.#observer?.taken(Math.max(now - readyAt, 0) / 1000);
    return item;
  }

  /** One timer, for the earliest delayed item. */
  #setTimer(): void {
    const at = this.#delayed.peek()?.readyAt;
    if (at === undefined || this.#timer?.at === at) {
      return;
    }
    this.#timer?.cancel();
    const cancel = this.#clock.after(at - this.#clock.now(), () => {
      this.#timer = undefined;
      this.#promote();
      this.#serve();
      this.#setTimer();
    });
    this.#timer = { at, cancel };
  }

  #endIfDrained(): void {
    if (!this.#isShutDown || this.#waiting.size > 0 || this.#again.size > 0) {
      return;
    }
    for (const taker of this.#takers.splice(0)) {
      taker(undefined);
    }
    if (this.#taken.size === 0) {
      this.#drained.resolve();
    }
  }
}
