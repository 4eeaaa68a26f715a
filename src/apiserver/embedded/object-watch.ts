import { ApiError, ObjectSelection } from '../../cluster/index.ts';
import type { WatchEvent, WatchOptions } from '../../cluster/index.ts';
import { apiVersionOf } from '../../resources/index.ts';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import { authorize, servedResource } from './machine.ts';
import type { Caller, Machine } from './machine.ts';
import { parseRevision, requireReached, requireStored } from './object-reads.ts';
import type { ServedResource } from './resource-registry.ts';
import type { Change } from './store/change-log.ts';
import type { Collection } from './store/collection.ts';

/** How often a quiet watch says how far it has come, where that is wanted. API servers do so about once a minute. */
export const BOOKMARK_INTERVAL_MS = 60_000;

/** A watch that names no time ends after this long, as those of API servers do after 30 to 60 minutes. */
export const DEFAULT_WATCH_MS = 1_800_000;

/** Marks the bookmark after which a watch has told everything that was there. */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** What a cluster ends its watches with. */
export interface WatchLifetime {
  /** Aborted when the cluster closes: all watches end. */
  readonly closed: AbortSignal;
  readonly bookmarkIntervalMs: number;
}

export async function* watchObjects(
  machine: Machine,
  caller: Caller,
  type: ResourceType,
  options: WatchOptions,
  lifetime: WatchLifetime,
): AsyncGenerator<WatchEvent> {
  options.signal?.throwIfAborted();
  const served = servedResource(machine, type);
  const selection = new ObjectSelection(served.definition, options);
  authorize(machine, caller, 'watch', type, { namespace: options.namespace, name: selection.name });
  requireStored(served, 'watch');
  const collection = machine.store.collection(served.collection);
  const { initial, revision, ...start } = beginning(machine, collection, selection, options);
  let position = start.position;
  for (const stored of initial) {
    if (selection.matches(stored)) {
      yield { type: 'ADDED', object: served.view(stored) };
      options.signal?.throwIfAborted();
    }
  }
  if (options.sendInitialEvents === true) {
    yield bookmark(served, revision, true);
  }
  const { timeoutSeconds = 0, allowBookmarks = false } = options;
  const end = performance.now() + (timeoutSeconds > 0 ? timeoutSeconds * 1000 : DEFAULT_WATCH_MS);
  let bookmarkAt = allowBookmarks ? performance.now() + lifetime.bookmarkIntervalMs : Infinity;
  const alarm = new Alarm(collection, options.signal, lifetime.closed);
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
      // Everything that there is has been told: what a bookmark says is true now, and only now.
      const now = performance.now();
      const isOver = lifetime.closed.aborted || now >= end || !isServed(machine, type);
      if (now >= bookmarkAt || (isOver && allowBookmarks)) {
        bookmarkAt = now + lifetime.bookmarkIntervalMs;
        yield bookmark(served, machine.store.revision, false);
        options.signal?.throwIfAborted();
        if (!isOver) {
          continue;
        }
      }
      if (isOver) {
        return;
      }
      await alarm.wait(Math.min(end, bookmarkAt) - now);
      options.signal?.throwIfAborted();
    }
  } finally {
    alarm.close();
  }
}

/** Kinds can go away while they are watched. */
function isServed({ registry }: Machine, { group, version, resource }: ResourceType): boolean {
  return registry.find(group, version, resource) !== undefined;
}

/** What is told first, and where the log goes on. */
function beginning(
  machine: Machine,
  collection: Collection,
  selection: ObjectSelection,
  { resourceVersion = '', sendInitialEvents }: WatchOptions,
): { initial: readonly KubernetesObject[]; revision: number; position: number } {
  const current = machine.store.revision;
  const revision = resourceVersion === '' ? 0 : parseRevision(resourceVersion);
  requireReached(machine, revision);
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

/** What a change is to somebody who sees only what matches: an object that no longer does is gone. */
function eventOf(served: ServedResource, selection: ObjectSelection, change: Change): WatchEvent | undefined {
  const object = served.view(change.object);
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
  // It went out of sight: as it last was in sight, with the version of the change.
  const previous = served.view(change.previous);
  const metadata = { ...previous.metadata, resourceVersion: String(change.revision) };
  return { type: 'DELETED', object: { ...previous, metadata } };
}

function bookmark({ definition }: ServedResource, revision: number, isInitialEnd: boolean): WatchEvent {
  const metadata = {
    resourceVersion: String(revision),
    creationTimestamp: null,
    ...(isInitialEnd ? { annotations: { [INITIAL_EVENTS_END]: 'true' } } : {}),
  };
  const object = { apiVersion: apiVersionOf(definition), kind: definition.kind, metadata };
  return { type: 'BOOKMARK', object: object as unknown as KubernetesObject };
}

/** Waits for a change of a collection, for a while, or until somebody wants it to end. */
class Alarm {
  readonly #collection: Collection;
  readonly #signals: readonly AbortSignal[];
  #ring: (() => void) | undefined;
  readonly #onAbort = (): void => this.#ring?.();

  constructor(collection: Collection, ...signals: readonly (AbortSignal | undefined)[]) {
    this.#collection = collection;
    this.#signals = signals.filter((signal) => signal !== undefined);
    for (const signal of this.#signals) {
      signal.addEventListener('abort', this.#onAbort);
    }
  }

  /** @param milliseconds at most */
  async wait(milliseconds: number): Promise<void> {
    if (this.#signals.some(({ aborted }) => aborted)) {
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = this.#collection.onChange(resolve);
    const timer = setTimeout(resolve, Math.max(0, milliseconds));
    timer.unref();
    this.#ring = resolve;
    try {
      await promise;
    } finally {
      stop();
      clearTimeout(timer);
      this.#ring = undefined;
    }
  }

  close(): void {
    for (const signal of this.#signals) {
      signal.removeEventListener('abort', this.#onAbort);
    }
  }
}
