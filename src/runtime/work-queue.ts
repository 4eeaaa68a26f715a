import type { Clock } from './clock.ts';
import { SYSTEM_CLOCK } from './clock.ts';
import { Heap } from './heap.ts';
import type { HeapItem } from './heap.ts';
import { TokenBucket } from './token-bucket.ts';
import type { TokenBucketOptions } from './token-bucket.ts';

/** Priority of what is added without one. Higher ones are taken first. */
export const DEFAULT_PRIORITY = 0;
/** Priority of what only needs a look: objects of a first list, where a change that somebody waits for goes first. */
export const LOW_PRIORITY = -100;

/** The first retry comes within this long: most failures are a conflict that is gone by then. As client-go. Milliseconds. */
export const RETRY_BASE_MS = 5;
/** No retry waits longer: what was broken for a day is found mended within minutes. As client-go. Milliseconds. */
export const RETRY_CAP_MS = 1_000_000;
/** Part of a wait that is left to chance, so that what failed together is not retried together. */
export const RETRY_JITTER = 0.25;
/** Retries of all items together, so that a thousand failing objects do not flood an API server. As client-go. */
export const RETRY_RATE: TokenBucketOptions = { perSecond: 10, burst: 100 };
/** 2 ** 40 times the base is past every cap. */
const MAX_DOUBLINGS = 40;

/** What a queue tells of itself. Times in seconds. */
export interface WorkQueueObserver {
  /** An item was added that was not there already. */
  added(): void;
  /** An item was taken, after so long in the queue. */
  taken(waitedSeconds: number): void;
  /** An item was done, after so long. */
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
}

export interface AddOptions {
  /** Default: {@link DEFAULT_PRIORITY}. Of an item that waits already the higher one counts. */
  readonly priority?: number;
  /** Not before so many milliseconds. Of an item that waits already the earlier time counts. Default: 0. */
  readonly afterMs?: number;
}

/** An item that waits: for its time, or for somebody to take it. */
interface Entry<T> extends HeapItem {
  readonly item: T;
  priority: number;
  /** When it may be taken. */
  readyAt: number;
  /** Order among those of one priority. */
  turn: number;
  isReady: boolean;
}

/**
 * Items to be worked on. Each is in the queue once, however often it was added, and is worked on by one taker at a time:
 * added meanwhile, it comes again afterwards. Failed items are added with {@link retry}, which waits longer each time.
 */
export class WorkQueue<T extends string = string> {
  readonly #clock: Clock;
  readonly #observer: WorkQueueObserver | undefined;
  readonly #baseMs: number;
  readonly #capMs: number;
  readonly #bucket: TokenBucket;
  readonly #random: () => number;
  readonly #waiting = new Map<T, Entry<T>>();
  /** Each item that waits is in one of these. */
  readonly #delayed = new Heap<Entry<T>>((a, b) => a.readyAt < b.readyAt);
  readonly #ready = new Heap<Entry<T>>((a, b) =>
    a.priority === b.priority ? a.turn < b.turn : a.priority > b.priority,
  );
  /** When each item that is worked on was taken. */
  readonly #taken = new Map<T, number>();
  /** What was added while it was worked on. */
  readonly #again = new Map<T, { readonly priority: number; readonly readyAt: number }>();
  readonly #failures = new Map<T, number>();
  readonly #takers: ((item: T | undefined) => void)[] = [];
  readonly #drained = Promise.withResolvers<void>();
  #timer: { readonly at: number; readonly cancel: () => void } | undefined;
  #turn = 0;
  #isShutDown = false;

  constructor(options: WorkQueueOptions = {}) {
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#observer = options.observer;
    this.#baseMs = options.baseMs ?? RETRY_BASE_MS;
    this.#capMs = options.capMs ?? RETRY_CAP_MS;
    this.#bucket = new TokenBucket(options.rate ?? RETRY_RATE);
    this.#random = options.random ?? Math.random;
  }

  /** Items that could be taken now. */
  get depth(): number {
    return this.#ready.size;
  }

  /** Items that wait for their time. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** Items that are worked on. */
  get active(): number {
    return this.#taken.size;
  }

  /** How long the item that is worked on for the longest time has been. Milliseconds. */
  get longestRunningMs(): number {
    const [first] = this.#taken.values();
    return first === undefined ? 0 : this.#clock.now() - first;
  }

  /** Time spent so far on all items that are worked on. Milliseconds. */
  get unfinishedMs(): number {
    const now = this.#clock.now();
    return this.#taken.values().reduce((sum, since) => sum + now - since, 0);
  }

  /** Adds an item. After {@link shutDown} nothing is added. */
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
   * Adds an item that failed: later with each failure until {@link forget}, and no faster than the queue's rate. Where `afterMs` is
   * given, after that time instead.
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

  /** The item is well: its next failure is its first one. */
  forget(item: T): void {
    this.#failures.delete(item);
  }

  /** How often the item failed since it was last well. */
  failures(item: T): number {
    return this.#failures.get(item) ?? 0;
  }

  /**
   * The next item, as soon as there is one; {@link done} must follow. Undefined once the queue is shut down and nothing is
   * ready any more.
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

  /** The work on an item is over, well or not. */
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

  /**
   * Takes nothing more in and drops what waits for its time; what was added to be done at once is still given out. Resolves
   * when all of that is done.
   */
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

  /** Puts an item where it belongs that nobody works on; its turn stays when it was ready before. */
  #enter(item: T, priority: number, readyAt: number): void {
    const old = this.#waiting.get(item);
    if (old !== undefined && old.priority === priority && old.readyAt === readyAt) {
      return;
    }
    if (old !== undefined) {
      (old.isReady ? this.#ready : this.#delayed).remove(old);
    }
    const isReady = readyAt <= this.#clock.now();
    const turn = old?.isReady === true ? old.turn : this.#turn++;
    const entry: Entry<T> = { item, priority, readyAt, turn, isReady, position: 0 };
    this.#waiting.set(item, entry);
    if (isReady) {
      this.#ready.push(entry);
      this.#serve();
    } else {
      this.#delayed.push(entry);
      this.#setTimer();
    }
  }

  /** Moves what has waited long enough to those that may be taken. */
  #promote(): void {
    const now = this.#clock.now();
    for (let entry = this.#delayed.peek(); entry !== undefined && entry.readyAt <= now; entry = this.#delayed.peek()) {
      this.#delayed.remove(entry);
      entry.isReady = true;
      entry.turn = this.#turn++;
      this.#ready.push(entry);
    }
  }

  /** Gives what may be taken to those who wait for it. */
  #serve(): void {
    while (this.#takers.length > 0) {
      const entry = this.#ready.pop();
      if (entry === undefined) {
        return;
      }
      this.#takers.shift()?.(this.#hand(entry));
    }
  }

  #hand({ item, readyAt }: Entry<T>): T {
    const now = this.#clock.now();
    this.#waiting.delete(item);
    this.#taken.set(item, now);
    this.#observer?.taken(Math.max(now - readyAt, 0) / 1000);
    return item;
  }

  /** One timer, for the item that is due first. */
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
