// The objects that governance policies read. Each kind is listed once and watched while a policy reads it, so the number of
// requests does not depend on the number of policies.
import type { Logger } from 'pino';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import {
  keyOf,
  keyText,
  type KubernetesObject,
  type ObjectKey,
  type ResourceType,
  withoutManagedFields,
} from '../../resources/index.ts';
import { aborted, type Change, type Clock, ObjectCache, type Runnable, SYSTEM_CLOCK } from '../../runtime/index.ts';
import { typeKey } from './kind-mappings.ts';

/** How long the first list of a kind may take. Milliseconds. */
const OPEN_TIMEOUT_MS = 15_000;
/** How long a kind stays watched after its last reader: policies are often replaced. Milliseconds. */
const CLOSE_AFTER_MS = 30_000;
/** Answers to a list or watch that a retry alone does not change: the kind cannot be read. */
const UNREADABLE_CODES: ReadonlySet<number> = new Set([403, 404, 405]);

/** Objects that a policy reads: one object, those of a namespace, or all of the kind. */
export interface ReadSelection {
  readonly type: ResourceType;
  readonly namespace?: string;
  readonly name?: string;
}

/** The objects of a kind, as {@link ObjectReader.open} returns them. */
export type KindObjects = Pick<ObjectCache, 'get' | 'list'>;

/** Reads objects for the keys of one controller. */
export interface ObjectReader {
  /**
   * The objects of a kind, listed completely.
   * @throws ApiError when the kind cannot be read, ClusterError when the cluster does not answer
   */
  open(type: ResourceType, signal: AbortSignal): Promise<KindObjects>;
  /** Replaces the objects whose changes enqueue the key. */
  use(key: ObjectKey, selections: readonly ReadSelection[]): void;
  /** Adds objects to those whose changes enqueue the key. */
  add(key: ObjectKey, selection: ReadSelection): void;
}

export interface WatchedKindsOptions {
  /** With the rights to list and watch what policies read. */
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly log: Logger;
  readonly clock?: Clock;
}

/** Watches kinds while policies read them. */
export class WatchedKinds implements Runnable {
  readonly name = 'governed objects';
  readonly #options: WatchedKindsOptions;
  readonly #clock: Clock;
  readonly #kinds = new Map<string, WatchedKind>();
  #signal: AbortSignal | undefined;

  constructor(options: WatchedKindsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    await aborted(signal);
    for (const kind of this.#kinds.values()) {
      kind.close();
    }
    this.#kinds.clear();
    this.#signal = undefined;
  }

  /** The number of kinds that are watched. */
  get size(): number {
    return this.#kinds.size;
  }

  /** A reader for one controller. @param enqueue called with a key when an object that it reads changes */
  reader(enqueue: (key: ObjectKey) => void): ObjectReader {
    const used = new Map<string, readonly WatchedKind[]>();
    return {
      open: async (type, signal) => await this.#kind(type).open(signal),
      use: (key, selections) => {
        const user: User = { key, enqueue };
        const text = keyText(key);
        const before = used.get(text) ?? [];
        const byKind = Map.groupBy(selections, ({ type }) => this.#kind(type));
        for (const [kind, own] of byKind) {
          kind.use(user, own);
        }
        for (const kind of before.filter((one) => !byKind.has(one))) {
          kind.release(user);
        }
        if (byKind.size === 0) {
          used.delete(text);
        } else {
          used.set(text, [...byKind.keys()]);
        }
      },
      add: (key, selection) => {
        const kind = this.#kind(selection.type);
        kind.add({ key, enqueue }, selection);
        const text = keyText(key);
        used.set(text, [...new Set([...(used.get(text) ?? []), kind])]);
      },
    };
  }

  #kind(type: ResourceType): WatchedKind {
    const key = typeKey(type);
    const known = this.#kinds.get(key);
    if (known !== undefined) {
      return known;
    }
    const kind = new WatchedKind({
      ...this.#options,
      type,
      clock: this.#clock,
      stopped: this.#signal ?? AbortSignal.abort(),
      closed: () => {
        if (this.#kinds.get(key) === kind) {
          this.#kinds.delete(key);
        }
      },
    });
    this.#kinds.set(key, kind);
    return kind;
  }
}

/** A key of a controller. */
interface User {
  readonly key: ObjectKey;
  readonly enqueue: (key: ObjectKey) => void;
}

interface WatchedKindOptions extends WatchedKindsOptions {
  readonly type: ResourceType;
  readonly clock: Clock;
  readonly stopped: AbortSignal;
  readonly closed: () => void;
}

/** One kind: its cache, and who reads what of it. */
class WatchedKind {
  readonly #options: WatchedKindOptions;
  readonly #cache: ObjectCache;
  readonly #closing = new AbortController();
  readonly #readers = new SelectionIndex();
  /** The failure of the present outage. */
  #failure: unknown;
  #failed = Promise.withResolvers<never>();
  #cancelClose: () => void = () => undefined;

  constructor(options: WatchedKindOptions) {
    this.#options = options;
    const { cluster, type, log, stopped } = options;
    this.#cache = new ObjectCache({
      cluster,
      type,
      log,
      transform: withoutManagedFields,
      onError: (error) => this.#fail(error),
    });
    this.#failed.promise.catch(() => undefined);
    this.#cache.subscribe((change) => this.#changed(change));
    void this.#cache.start(AbortSignal.any([stopped, this.#closing.signal]));
    this.#cache.synced.then(
      () => this.#readers.notifyAll(),
      () => undefined,
    );
    this.#closeLater();
  }

  async open(signal: AbortSignal): Promise<KindObjects> {
    if (this.#readers.isEmpty) {
      this.#closeLater();
    }
    const { synced, lastError } = this.#cache.report;
    if (synced && !isUnreadable(lastError)) {
      return this.#cache;
    }
    if (this.#failure !== undefined) {
      throw this.#failure;
    }
    const limit = AbortSignal.any([signal, AbortSignal.timeout(OPEN_TIMEOUT_MS)]);
    await Promise.race([this.#cache.synced, this.#failed.promise, aborted(limit)]);
    limit.throwIfAborted();
    return this.#cache;
  }

  use(user: User, selections: readonly ReadSelection[]): void {
    this.#cancelClose();
    this.#readers.set(user, selections);
  }

  add(user: User, selection: ReadSelection): void {
    this.#cancelClose();
    this.#readers.add(user, selection);
  }

  release(user: User): void {
    this.#readers.delete(user);
    if (this.#readers.isEmpty && isUnreadable(this.#failure)) {
      // A kind of the same name may be installed later: it is then listed at once, not when this watch is tried again.
      this.close();
      this.#options.closed();
    } else if (this.#readers.isEmpty) {
      this.#closeLater();
    }
  }

  close(): void {
    this.#cancelClose();
    this.#closing.abort(new Error('no policy reads this kind'));
  }

  #closeLater(): void {
    this.#cancelClose();
    this.#cancelClose = this.#options.clock.after(CLOSE_AFTER_MS, () => {
      this.close();
      this.#options.closed();
    });
  }

  #fail(error: unknown): void {
    const isNew = this.#failure === undefined;
    this.#failure = error;
    if (isNew) {
      this.#failed.reject(error);
      this.#readers.notifyAll();
    }
  }

  #changed({ before, after }: Change): void {
    this.#recover();
    const object = after ?? before;
    if (object !== undefined) {
      this.#readers.notify(object);
    }
  }

  #recover(): void {
    if (this.#failure !== undefined) {
      this.#failure = undefined;
      this.#failed = Promise.withResolvers<never>();
      this.#failed.promise.catch(() => undefined);
    }
  }
}

/** Users by what they read, so that a change finds its readers without a search. */
class SelectionIndex {
  readonly #selections = new Map<string, { readonly user: User; readonly texts: Set<string> }>();
  /** By `namespace/name`, `namespace/`, `/name`, or `/` for all. */
  readonly #users = new Map<string, Set<User>>();
  /** A user is the same for the same controller and key. */
  readonly #ids = new Map<User['enqueue'], number>();

  get isEmpty(): boolean {
    return this.#selections.size === 0;
  }

  set(user: User, selections: readonly ReadSelection[]): void {
    this.delete(user);
    this.#selections.set(this.#idOf(user), { user, texts: new Set() });
    for (const selection of selections) {
      this.add(user, selection);
    }
  }

  add(user: User, { namespace = '', name = '' }: ReadSelection): void {
    const id = this.#idOf(user);
    const known = this.#selections.get(id) ?? { user, texts: new Set() };
    this.#selections.set(id, known);
    const text = `${namespace}/${name}`;
    if (!known.texts.has(text)) {
      known.texts.add(text);
      this.#users.set(text, (this.#users.get(text) ?? new Set()).add(known.user));
    }
  }

  delete(user: User): void {
    const id = this.#idOf(user);
    const known = this.#selections.get(id);
    this.#selections.delete(id);
    for (const text of known?.texts ?? []) {
      const users = this.#users.get(text);
      users?.delete(known?.user ?? user);
      if (users?.size === 0) {
        this.#users.delete(text);
      }
    }
  }

  notify(object: KubernetesObject): void {
    const { namespace = '', name } = keyOf(object);
    const found = new Set<User>();
    for (const text of new Set([`${namespace}/${name}`, `${namespace}/`, `/${name}`, '/'])) {
      for (const user of this.#users.get(text) ?? []) {
        found.add(user);
      }
    }
    for (const { enqueue, key } of found) {
      enqueue(key);
    }
  }

  notifyAll(): void {
    for (const { user } of this.#selections.values()) {
      user.enqueue(user.key);
    }
  }

  #idOf({ enqueue, key }: User): string {
    const id = this.#ids.get(enqueue) ?? this.#ids.size;
    this.#ids.set(enqueue, id);
    return `${id} ${keyText(key)}`;
  }
}

function isUnreadable(error: unknown): boolean {
  return error instanceof ApiError && UNREADABLE_CODES.has(error.code);
}
