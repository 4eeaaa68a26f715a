import { garbageCollector } from './collect-garbage.ts';

/**
 * Memory of dropped instances at which the thread collects its garbage. Writing as much takes a guest some 10 ms, as long as
 * the collection. Without it, 12 instances of 128 MiB were measured to take 1.6 GiB.
 */
export const MAX_GARBAGE_BYTES = 32 * 1024 * 1024;

/** What a sandbox reports about its instance. Instances that rest between calls hold memory; see {@link InstanceMemory}. */
export interface InstanceShare {
  /** Most bytes that an instance may hold between calls. */
  readonly maxBytes: number;
  /** Called when an instance rests after its start or after a call; `release` drops it. */
  rest(bytes: number, release: () => void): void;
  /** Called when the sandbox drops an instance, with the memory that it held. */
  dropped(bytes: number): void;
  /** Called before an instance is made. */
  starting(): void;
}

/** For sandboxes that nobody else shares a process with: tests and commands. */
export const UNLIMITED_SHARE: InstanceShare = { maxBytes: Infinity, rest() {}, dropped() {}, starting() {} };

export interface InstanceMemoryOptions {
  /** Most bytes that all instances hold together. */
  readonly bytes: number;
  /** Most bytes that the instances of one owner hold together. */
  bytesOf(owner: string): number;
}

/** A module's instance in this thread. */
interface Holder {
  readonly owner: string;
  /** Of the last instance that rested; 0: none did. */
  lastBytes: number;
  /** Of the instance that rests; 0: none does. */
  bytes: number;
  release: (() => void) | undefined;
}

/**
 * The memory that instances of one thread hold between calls. When it is used up, the instances that were not used for the
 * longest time are dropped: those of the owner that exceeds its part, else those of all. The next call makes a new one.
 */
export class InstanceMemory {
  readonly #options: InstanceMemoryOptions;
  #limit: number;
  /** By key, the least recently used first. */
  readonly #holders = new Map<string, Holder>();
  #bytes = 0;
  /** Of dropped instances, since the last collection of garbage. */
  #garbage = 0;
  #collecting: NodeJS.Immediate | undefined;
  #collector: (() => void) | undefined;
  readonly #bytesByOwner = new Map<string, number>();

  constructor(options: InstanceMemoryOptions) {
    this.#options = options;
    this.#limit = options.bytes;
  }

  /** Bytes of all resting instances. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Changes the limit of all instances together. */
  limit(bytes: number): void {
    this.#limit = bytes;
    this.#shrink('', undefined);
  }

  /** The share of one module; `key` identifies it in this thread. */
  share(key: string, owner: string): InstanceShare {
    const holder: Holder = { owner, lastBytes: 0, bytes: 0, release: undefined };
    this.#holders.set(key, holder);
    return {
      // An instance that alone exceeds its owner's part runs, and is not kept.
      maxBytes: this.#options.bytes,
      rest: (bytes, release) => {
        holder.lastBytes = bytes;
        if (this.#holders.get(key) === holder) {
          this.#holders.delete(key);
          this.#holders.set(key, holder);
          holder.release = release;
          this.#count(holder, bytes);
          this.#shrink(key, owner);
        }
      },
      dropped: (bytes) => {
        holder.release = undefined;
        this.#count(holder, 0);
        this.#drop(bytes);
      },
      starting: () => this.collect(),
    };
  }

  /** Bytes that the module's instance held when it rested last; undefined: it never did. */
  lastBytes(key: string): number | undefined {
    const bytes = this.#holders.get(key)?.lastBytes ?? 0;
    return bytes === 0 ? undefined : bytes;
  }

  /** Forgets a module that is no longer used, and drops its instance. */
  forget(key: string): void {
    const holder = this.#holders.get(key);
    if (holder !== undefined) {
      this.#release(holder);
      this.#holders.delete(key);
    }
  }

  clear(): void {
    for (const key of this.#holders.keys()) {
      this.forget(key);
    }
  }

  /** @param key of the instance that rests now, which is dropped last */
  #shrink(key: string, owner: string | undefined): void {
    if (owner !== undefined) {
      const limit = this.#options.bytesOf(owner);
      this.#releaseWhile(
        (one) => one.owner === owner,
        () => (this.#bytesByOwner.get(owner) ?? 0) > limit,
        key,
      );
    }
    this.#releaseWhile(
      () => true,
      () => this.#bytes > this.#limit,
      key,
    );
  }

  #releaseWhile(isOf: (holder: Holder) => boolean, isTooMuch: () => boolean, last: string): void {
    if (!isTooMuch()) {
      return;
    }
    for (const [key, holder] of this.#holders) {
      if (!isTooMuch()) {
        return;
      }
      if (key !== last && isOf(holder)) {
        this.#release(holder);
      }
    }
    const holder = this.#holders.get(last);
    if (holder !== undefined && isTooMuch()) {
      this.#release(holder);
    }
  }

  #release(holder: Holder): void {
    holder.release?.();
    holder.release = undefined;
    this.#drop(holder.bytes);
    this.#count(holder, 0);
  }

  /** Counts garbage. It is collected later, because the caller still refers to the instance. */
  #drop(bytes: number): void {
    this.#garbage += bytes;
    if (this.#garbage >= MAX_GARBAGE_BYTES) {
      this.#collecting ??= setImmediate(() => this.collect());
    }
  }

  /** Collects the garbage of dropped instances, if it is {@link MAX_GARBAGE_BYTES} or more. */
  collect(): void {
    clearImmediate(this.#collecting);
    this.#collecting = undefined;
    if (this.#garbage >= MAX_GARBAGE_BYTES) {
      this.#garbage = 0;
      this.#collector ??= garbageCollector();
      this.#collector();
    }
  }

  #count(holder: Holder, bytes: number): void {
    const difference = bytes - holder.bytes;
    if (difference !== 0) {
      holder.bytes = bytes;
      this.#bytes += difference;
      const owned = (this.#bytesByOwner.get(holder.owner) ?? 0) + difference;
      if (owned === 0) {
        this.#bytesByOwner.delete(holder.owner);
      } else {
        this.#bytesByOwner.set(holder.owner, owned);
      }
    }
  }
}
