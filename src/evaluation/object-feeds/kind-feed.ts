// A kind whose objects evaluation looks up: watched while policies need it, and published to workers. It shares `ObjectCache` with
// the other two users of a watch, and nothing more: this one pushes changes to workers, `CachedKind` makes policies wait for a list,
// and `WatchedKinds` of governance wakes the controllers that read an object.
import { type Cluster, isNotFound } from '../../cluster/index.ts';
import type { FindResult, ObjectFailure, WatchedChange, WatchedObject } from '../watched-objects.ts';
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

const ABSENT: ObjectFailure = { state: 'absent' };

export interface KindFeedOptions {
  readonly cluster: Pick<Cluster, 'get' | 'list' | 'watch'>;
  readonly type: ResourceType;
  /** The fields of an object that are kept. */
  readonly transform: (object: KubernetesObject) => KubernetesObject;
  /** Default: all objects. */
  readonly fieldSelector?: string;
  /** The JSON text of the fields of a transformed object for workers; changes of other fields are not published. */
  readonly textOf: (object: KubernetesObject) => string;
  /** Why workers do not get an object. Default: they get all. */
  readonly failure?: (object: KubernetesObject) => ObjectFailure | undefined;
  /**
   * The result for an object that a watched kind does not have. Workers know an absence for a while, so that reviews which
   * need the object do not read it each time. Default: the object is absent, and workers do not know it.
   */
  readonly notFound?: () => Promise<ObjectFailure>;
  readonly publish: (change: WatchedChange) => void;
  /** Called after a change by the watch, or its end. */
  readonly changed: () => void;
  /** Called when an object could not be read. */
  readonly failed: (error: unknown) => void;
  readonly log: Logger;
}

/** Publishes the objects of a kind: all while it is watched, otherwise those that reviews need, for a while. */
export class KindFeed {
  readonly #options: KindFeedOptions;
  #watch: KindWatch | undefined;
  readonly #finding = new Map<string, Promise<FindResult>>();
  /** Individually read objects, until only the watch applies. */
  readonly #found = new Map<string, NodeJS.Timeout>();
  /** Recorded objects, until the watch has listed the kind. */
  #restored: ReadonlyMap<string, WatchedObject> = new Map();

  constructor(options: KindFeedOptions) {
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

  /** Watches anew, with other fields or another selector. Workers keep their objects until the kind is listed. */
  rewatch(): void {
    this.#watch?.stop();
    this.#watch = undefined;
    this.watch();
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
    const { cluster, type, transform, failed, notFound } = this.#options;
    try {
      const object = await cluster.get(type, key, { signal: AbortSignal.timeout(FIND_TIMEOUT_MS) });
      this.#publish(false, [published(this.#options, key, transform(object))]);
      this.#keepForAWhile(key);
      return { state: 'published' };
    } catch (error) {
      if (isNotFound(error)) {
        const failure = (await notFound?.()) ?? ABSENT;
        if (notFound !== undefined && failure.state === 'absent') {
          this.#publishAbsence(key, failure);
        }
        return failure;
      }
      failed(error);
      const isRestored = this.#restored.has(keyText(key));
      return isRestored ? { state: 'published' } : { state: 'unreadable', reason: errorText(error) };
    }
  }

  /** Not while the watch has the object, or may soon list the kind. */
  #publishAbsence(key: ObjectKey, failure: ObjectFailure): void {
    if (this.#watch?.isListed === true && this.#watch.get(key) === undefined) {
      this.#publish(false, [[key, undefined, failure]]);
      this.#keepForAWhile(key);
    }
  }

  /** Replaces an object that was read by the watch's state after {@link FOUND_MS}. Until then the watch may lag behind, or fail. */
  #keepForAWhile(key: ObjectKey): void {
    const id = keyText(key);
    clearTimeout(this.#found.get(id));
    const timer = setTimeout(() => {
      this.#found.delete(id);
      this.#publish(false, [this.#watch?.get(key) ?? this.#restored.get(id) ?? [key, undefined]]);
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

/** One watch of a kind. Reports all objects when they are listed, later those whose text changed, in batches. */
class KindWatch {
  readonly #options: KindFeedOptions;
  readonly #report: (isAll: boolean, objects: readonly WatchedObject[]) => void;
  readonly #cache: ObjectCache;
  readonly #stopping = new AbortController();
  readonly #changed = new Map<string, ObjectKey>();
  #reporting: NodeJS.Immediate | undefined;
  #isListed = false;

  constructor(options: KindFeedOptions, report: (isAll: boolean, objects: readonly WatchedObject[]) => void) {
    const { cluster, type, transform, fieldSelector, log } = options;
    this.#options = options;
    this.#report = report;
    const selection = fieldSelector === undefined ? {} : { fieldSelector };
    this.#cache = new ObjectCache({ cluster, type, transform, ...selection, log });
    this.#cache.subscribe((change) => this.#receive(change));
    this.#cache.synced.then(
      () => this.#listed(),
      () => undefined,
    );
    void this.#cache.start(this.#stopping.signal);
  }

  get isListed(): boolean {
    return this.#isListed;
  }

  get(key: ObjectKey): WatchedObject | undefined {
    const object = this.#isListed ? this.#cache.get(key) : undefined;
    return object === undefined ? undefined : published(this.#options, key, object);
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
        this.list().map((object) => published(this.#options, keyOf(object), object)),
      );
    }
  }

  #receive({ before, after }: Change): void {
    const object = after ?? before;
    const { textOf } = this.#options;
    const isSame = before !== undefined && after !== undefined && textOf(before) === textOf(after);
    if (object !== undefined && this.#isListed && !isSame) {
      const key = keyOf(object);
      this.#changed.set(keyText(key), key);
      this.#reporting ??= setImmediate(() => this.#reportChanged());
    }
  }

  #reportChanged(): void {
    this.#reporting = undefined;
    const objects = [...this.#changed.values()].map((key) => this.get(key) ?? ([key, undefined] as const));
    this.#changed.clear();
    this.#report(false, objects);
  }
}

function published({ textOf, failure }: KindFeedOptions, key: ObjectKey, object: KubernetesObject): WatchedObject {
  const failed = failure?.(object);
  return failed === undefined ? [key, textOf(object)] : [key, undefined, failed];
}
