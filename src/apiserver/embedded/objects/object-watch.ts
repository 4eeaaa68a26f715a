import { ApiError, ObjectSelection } from '../../../cluster/index.ts';
import type { WatchEvent, WatchOptions } from '../../../cluster/index.ts';
import { apiVersionOf } from '../../../resources/index.ts';
import type { KubernetesObject, ResourceType } from '../../../resources/index.ts';
import { authorize, servedResource } from './cluster-context.ts';
import type { Caller, ClusterContext } from './cluster-context.ts';
import { parseRevision, requireReached, requireStored } from './object-reads.ts';
import type { RegisteredResource } from '../kinds/resource-registry.ts';
import type { StoredChange } from '../store/change-log.ts';
import type { Collection } from '../store/collection.ts';

/** Interval of bookmarks on watches without events, as in API servers. Milliseconds. */
export const BOOKMARK_INTERVAL_MS = 60_000;

/** Timeout of a watch that names none. API servers use a random time from 30 to 60 minutes. Milliseconds. */
const DEFAULT_WATCH_MS = 1_800_000;

/** The annotation of the bookmark after the initial events (KEP-3157). */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** What ends watches of a cluster, and when they get bookmarks. */
export interface WatchLifetime {
  /** Aborted when the cluster closes. */
  readonly closed: AbortSignal;
  readonly bookmarkIntervalMs: number;
}

export async function* watchObjects(
  context: ClusterContext,
  caller: Caller,
  type: ResourceType,
  options: WatchOptions,
  lifetime: WatchLifetime,
): AsyncGenerator<WatchEvent> {
  options.signal?.throwIfAborted();
  const served = servedResource(context, type);
  const selection = new ObjectSelection(served.definition, options);
  authorize(context, caller, 'watch', type, { namespace: options.namespace, name: selection.name });
  requireStored(served, 'watch');
  const collection = context.store.collection(served.collection);
  const { initial, revision, ...start } = startOf(context, collection, selection, options);
  let position = start.position;
  for (const stored of initial) {
    if (selection.matches(stored)) {
      yield { type: 'ADDED', object: served.inServedVersion(stored) };
      options.signal?.throwIfAborted();
    }
  }
  if (options.sendInitialEvents === true) {
    yield bookmark(served, revision, true);
  }
  const { timeoutSeconds = 0, allowBookmarks = false } = options;
  const end = performance.now() + (timeoutSeconds > 0 ? timeoutSeconds * 1000 : DEFAULT_WATCH_MS);
  let bookmarkAt = allowBookmarks ? performance.now() + lifetime.bookmarkIntervalMs : Infinity;
  const waiter = new ChangeWaiter(collection, options.signal, lifetime.closed);
  let last = revision;
  try {
    for (;;) {
      const change = collection.log.at(position);
      if (change === 'lost') {
        throw tooOld(last, collection.log.floor);
      }
      if (change !== undefined) {
        position += 1;
        last = change.revision;
        const event = eventOf(served, selection, change);
        if (event !== undefined) {
          yield event;
          options.signal?.throwIfAborted();
        }
        continue;
      }
      // A bookmark must follow all changes up to its version, so it is sent here, where none is left.
      const now = performance.now();
      const isOver = lifetime.closed.aborted || now >= end || !isServed(context, type);
      if (now >= bookmarkAt || (isOver && allowBookmarks)) {
        bookmarkAt = now + lifetime.bookmarkIntervalMs;
        yield bookmark(served, context.store.revision, false);
        options.signal?.throwIfAborted();
        if (!isOver) {
          continue;
        }
      }
      if (isOver) {
        return;
      }
      await waiter.wait(Math.min(end, bookmarkAt) - now);
      options.signal?.throwIfAborted();
    }
  } finally {
    waiter.close();
  }
}

/** Whether the kind is still served. */
function isServed({ registry }: ClusterContext, { group, version, resource }: ResourceType): boolean {
  return registry.find(group, version, resource) !== undefined;
}

/** The objects for initial events, and the position in the change log after them. */
function startOf(
  context: ClusterContext,
  collection: Collection,
  selection: ObjectSelection,
  { resourceVersion = '', sendInitialEvents }: WatchOptions,
): { initial: readonly KubernetesObject[]; revision: number; position: number } {
  const current = context.store.revision;
  const revision = resourceVersion === '' ? 0 : parseRevision(resourceVersion);
  requireReached(context, revision);
  if (sendInitialEvents === true || (sendInitialEvents === undefined && revision === 0)) {
    return { initial: [...collection.list(selection.namespace)], revision: current, position: collection.log.end };
  }
  if (revision === 0) {
    return { initial: [], revision: current, position: collection.log.end };
  }
  const position = collection.log.positionAfter(revision);
  if (position === undefined) {
    throw tooOld(revision, collection.log.floor);
  }
  return { initial: [], revision, position };
}

function tooOld(revision: number, floor: number): ApiError {
  return ApiError.expired(`too old resource version: ${revision} (${floor})`);
}

/** The event of a change. For a watch with selectors, an object that does not match any more is DELETED. */
function eventOf(served: RegisteredResource, selection: ObjectSelection, change: StoredChange): WatchEvent | undefined {
  const object = served.inServedVersion(change.object);
  const was = change.previous !== undefined && selection.matches(change.previous);
  const is = change.type !== 'DELETED' && selection.matches(change.object);
  if (is) {
    return { type: was ? 'MODIFIED' : 'ADDED', object };
  }
  if (!was || change.previous === undefined) {
    return undefined;
  }
  if (change.type === 'DELETED') {
    return { type: 'DELETED', object };
  }
  // DELETED contains the last matching state, with the version of the change.
  const previous = served.inServedVersion(change.previous);
  const metadata = { ...previous.metadata, resourceVersion: String(change.revision) };
  return { type: 'DELETED', object: { ...previous, metadata } };
}

function bookmark({ definition }: RegisteredResource, revision: number, isInitialEnd: boolean): WatchEvent {
  const metadata = {
    resourceVersion: String(revision),
    creationTimestamp: null,
    ...(isInitialEnd ? { annotations: { [INITIAL_EVENTS_END]: 'true' } } : {}),
  };
  const object = { apiVersion: apiVersionOf(definition), kind: definition.kind, metadata };
  return { type: 'BOOKMARK', object: object as unknown as KubernetesObject };
}

/** Waits until a collection changes, a time is over, or a signal is aborted. */
class ChangeWaiter {
  readonly #collection: Collection;
  readonly #signals: readonly AbortSignal[];
  #wake: (() => void) | undefined;
  readonly #onAbort = (): void => this.#wake?.();

  constructor(collection: Collection, ...signals: readonly (AbortSignal | undefined)[]) {
    this.#collection = collection;
    this.#signals = signals.filter((signal) => signal !== undefined);
    for (const signal of this.#signals) {
      signal.addEventListener('abort', this.#onAbort);
    }
  }

  /** @param milliseconds the longest wait */
  async wait(milliseconds: number): Promise<void> {
    if (this.#signals.some(({ aborted }) => aborted)) {
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = this.#collection.onChange(resolve);
    const timer = setTimeout(resolve, Math.max(0, milliseconds));
    timer.unref();
    this.#wake = resolve;
    try {
      await promise;
    } finally {
      stop();
      clearTimeout(timer);
      this.#wake = undefined;
    }
  }

  close(): void {
    for (const signal of this.#signals) {
      signal.removeEventListener('abort', this.#onAbort);
    }
  }
}
