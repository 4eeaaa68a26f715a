// A kind whose objects evaluation looks up: watched while policies need it, and published to workers.
import { isDeepStrictEqual } from 'node:util';
import { type Cluster, isNotFound } from '../../cluster/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import type { FindResult, WatchedChange, WatchedObject } from '../../evaluation/index.ts';
import type { Logger } from '../../log/index.ts';
import { apiVersionOf, keyOf, keyText } from '../../resources/index.ts';
import type { KubernetesObject, ObjectKey, ResourceType } from '../../resources/index.ts';
import { type Change, ObjectCache } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';

/**
 * How long an object that was read individually stays published when the watch does not have it: longer than the delay
 * of a watch. Milliseconds.
 */
const FOUND_MS = 5_000;
/** Timeout of a read of one object: shorter than that of most webhooks. Milliseconds. */
const FIND_TIMEOUT_MS = 3_000;

export interface WatchedKindOptions {
  readonly cluster: Pick<Cluster, 'get' | 'list' | 'watch'>;
  readonly type: ResourceType;
  /** The fields of an object that are kept. */
  readonly transform: (object: KubernetesObject) => KubernetesObject;
  /** The fields of an object for workers; changes of other fields are not published. */
  readonly view: (object: KubernetesObject) => JsonObject;
  readonly publish: (change: WatchedChange) => void;
  /** Called after a change by the watch, or its end. */
  readonly changed: () => void;
  /** Called when an object could not be read. */
  readonly failed: (error: unknown) => void;
  readonly log: Logger;
}

/** Publishes the objects of a kind: all while it is watched, otherwise those that reviews need, for a while. */
export class WatchedKind {
  readonly #options: WatchedKindOptions;
  #watch: KindWatch | undefined;
  readonly #finding = new Map<string, Promise<FindResult>>();
  /** Individually read objects, until only the watch applies. */
  readonly #found = new Map<string, NodeJS.Timeout>();
  /** Recorded objects, until the watch has listed the kind. */
  #restored: ReadonlyMap<string, WatchedObject> = new Map();

  constructor(options: WatchedKindOptions) {
    this.#options = options;
  }

  get isWatched(): boolean {
    return this.#watch !== undefined;
  }

  /** All objects that the watch has. */
  list(): readonly KubernetesObject[] {
    return this.#watch?.list() ?? [];
  }

  watch(): void {
    this.#watch ??= new KindWatch(this.#options, (isAll, objects) => this.#watched(isAll, objects));
  }

  /** Ends the watch and removes its objects from workers. */
  unwatch(): void {
    this.#watch?.stop();
    this.#watch = undefined;
    this.#watched(true, []);
  }

  /** Publishes recorded objects, except those read meanwhile. They apply until the kind is listed. */
  restore(objects: readonly WatchedObject[]): void {
    this.#restored = new Map(objects.map((object) => [keyText(object[0]), object]));
    const others = objects.filter(([key]) => !this.#found.has(keyText(key)));
    if (others.length > 0) {
      this.#publish(false, others);
    }
  }

  /** Reads one object and publishes it. Never rejects. */
  find(key: ObjectKey): Promise<FindResult> {
    const id = keyText(key);
    const finding = this.#finding.get(id) ?? this.#find(key).finally(() => this.#finding.delete(id));
    this.#finding.set(id, finding);
    return finding;
  }

  stop(): void {
    this.#watch?.stop();
    this.#watch = undefined;
    for (const timer of this.#found.values()) {
      clearTimeout(timer);
    }
  }

  async #find(key: ObjectKey): Promise<FindResult> {
    const { cluster, type, view, failed } = this.#options;
    try {
      const object = await cluster.get(type, key, { signal: AbortSignal.timeout(FIND_TIMEOUT_MS) });
      this.#publish(false, [[key, view(object)]]);
      this.#keepForAWhile(key);
      return { state: 'published' };
    } catch (error) {
      if (isNotFound(error)) {
        return { state: 'absent' };
      }
      failed(error);
      const isRestored = this.#restored.has(keyText(key));
      return isRestored ? { state: 'published' } : { state: 'unreadable', reason: errorText(error) };
    }
  }

  /** Replaces an object that was read by the watch's state after {@link FOUND_MS}. Until then the watch may lag behind, or fail. */
  #keepForAWhile(key: ObjectKey): void {
    const id = keyText(key);
    clearTimeout(this.#found.get(id));
    const timer = setTimeout(() => {
      this.#found.delete(id);
      this.#publish(false, [[key, this.#watch?.get(key) ?? this.#restored.get(id)?.[1]]]);
    }, FOUND_MS);
    timer.unref();
    this.#found.set(id, timer);
  }

  #watched(isAll: boolean, objects: readonly WatchedObject[]): void {
    this.#restored = new Map();
    this.#publish(isAll, objects);
    this.#options.changed();
  }

  #publish(isAll: boolean, objects: readonly WatchedObject[]): void {
    const { type, publish } = this.#options;
    publish({ apiVersion: apiVersionOf(type), kind: type.kind, isAll, objects });
  }
}

/** One watch of a kind. Reports all objects when they are listed, later those whose view changed, in batches. */
class KindWatch {
  readonly #view: WatchedKindOptions['view'];
  readonly #report: (isAll: boolean, objects: readonly WatchedObject[]) => void;
  readonly #cache: ObjectCache;
  readonly #stopping = new AbortController();
  readonly #changed = new Map<string, ObjectKey>();
  #reporting: NodeJS.Immediate | undefined;
  #isListed = false;

  constructor(options: WatchedKindOptions, report: (isAll: boolean, objects: readonly WatchedObject[]) => void) {
    const { cluster, type, transform, view, log } = options;
    this.#view = view;
    this.#report = report;
    this.#cache = new ObjectCache({ cluster, type, transform, log });
    this.#cache.subscribe((change) => this.#receive(change));
    this.#cache.synced.then(
      () => this.#listed(),
      () => undefined,
    );
    void this.#cache.start(this.#stopping.signal);
  }

  get(key: ObjectKey): JsonObject | undefined {
    const object = this.#isListed ? this.#cache.get(key) : undefined;
    return object === undefined ? undefined : this.#view(object);
  }

  list(): readonly KubernetesObject[] {
    return this.#cache.list();
  }

  stop(): void {
    clearImmediate(this.#reporting);
    this.#stopping.abort(new Error('no policy needs the objects of this kind'));
  }

  #listed(): void {
    if (!this.#stopping.signal.aborted) {
      this.#isListed = true;
      this.#report(
        true,
        this.list().map((object) => [keyOf(object), this.#view(object)]),
      );
    }
  }

  #receive({ before, after }: Change): void {
    const object = after ?? before;
    const isSame =
      before !== undefined && after !== undefined && isDeepStrictEqual(this.#view(before), this.#view(after));
    if (object !== undefined && this.#isListed && !isSame) {
      const key = keyOf(object);
      this.#changed.set(keyText(key), key);
      this.#reporting ??= setImmediate(() => this.#reportChanged());
    }
  }

  #reportChanged(): void {
    this.#reporting = undefined;
    const objects = [...this.#changed.values()].map((key) => [key, this.get(key)] as const);
    this.#changed.clear();
    this.#report(false, objects);
  }
}
