import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Cluster, Patch, SubresourceOptions, WriteOptions } from '../cluster/index.ts';
import {
  groupResourceOf,
  isJsonObject,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type ResourceType,
} from '../resources/index.ts';
import { type Clock, SYSTEM_CLOCK } from './clock.ts';
import { Waiting } from './reconcile-outcome.ts';

/** So often the same is written to an object at once. */
const FREE_WRITES = 4;
/** What the next write waits for; the others twice as long each time. Milliseconds. */
const FIRST_GAP_MS = 1_000;
/** When the other one has stopped, its last word stands for no longer than this. Milliseconds. */
const MAX_GAP_MS = 60_000;
/** After so long nobody fights. Milliseconds. */
const FORGET_MS = 2 * MAX_GAP_MS;

/** The reason of `Waiting` for a write that somebody else undoes again and again. */
export const CONTESTED_REASON = 'Contested';

/** What a cluster notes of an object: writes that differ in no more say the same. */
const NOTES: ReadonlySet<string> = new Set([
  'creationTimestamp',
  'generation',
  'managedFields',
  'resourceVersion',
  'uid',
]);
/** Likewise, of a condition. */
const CONDITION_NOTE = 'lastTransitionTime';

/** Writes of an object, or of a subresource of it, one after the other, that all said the same. */
interface SameWrites {
  readonly digest: string;
  readonly uid: string | undefined;
  readonly count: number;
  /** Of the last one. Milliseconds of a clock that does not go back. */
  readonly at: number;
}

interface Write {
  readonly type: ResourceType;
  readonly key: ObjectKey;
  readonly content: unknown;
  /** Whether there may be no such object before: then another one of its name is no news. */
  readonly mayCreate: boolean;
  readonly options: (WriteOptions & SubresourceOptions) | undefined;
}

export interface RestraintOptions {
  readonly log: Logger;
  readonly clock?: Clock;
}

/**
 * A cluster that nobody fights about. Whoever keeps an object as it is to be writes the same again when it was changed; two that
 * do not agree (controllers of two versions without an election, an operator of somebody else's) would do that for ever, as
 * fast as they can. Through this, the same is written to an object a few times at once and then more and more seldom; in
 * between, writes throw `Waiting`. What is not what this process wrote there last is never held up, nor is a dry run.
 */
export function restrained(cluster: Cluster, options: RestraintOptions): Cluster {
  const restraint = new WriteRestraint(options);
  return {
    discovery: cluster.discovery,
    get: (type, key, rest) => cluster.get(type, key, rest),
    list: (type, rest) => cluster.list(type, rest),
    watch: (type, rest) => cluster.watch(type, rest),
    // Two that do not agree change an object; somebody who removes it again and again is not to have it away for long.
    create: (type, object, rest) => cluster.create(type, object, rest),
    update: (type, object, rest) =>
      restraint.write(
        { type, key: keyOf(object), content: partOf(object, rest), mayCreate: false, options: rest },
        () => cluster.update(type, object, rest),
      ),
    patch: (type, key, patch, rest) =>
      restraint.write({ type, key, content: patched(patch), mayCreate: patch.type === 'apply', options: rest }, () =>
        cluster.patch(type, key, patch, rest),
      ),
    delete: async (type, key, rest) => {
      const left = await cluster.delete(type, key, rest);
      restraint.removed(type, key);
      return left;
    },
    deleteCollection: (type, rest) => cluster.deleteCollection(type, rest),
  };
}

class WriteRestraint {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #written = new Map<string, SameWrites>();
  #sweptAt: number;

  constructor({ log, clock = SYSTEM_CLOCK }: RestraintOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#sweptAt = clock.now();
  }

  /** @throws Waiting when the same was written too often */
  async write<T extends KubernetesObject>(write: Write, send: () => Promise<T>): Promise<T> {
    const { type, key, options } = write;
    // A name that the cluster gives is another one each time.
    if (options?.dryRun === true || key.name === '') {
      return await send();
    }
    const place = placeOf(type, key, options?.subresource);
    const digest = createHash('sha256').update(textOf(write.content)).digest('base64');
    this.#sweep();
    const before = this.#written.get(place);
    if (before?.digest === digest) {
      this.#check(write, before);
    }
    const made = await send();
    const { uid } = made.metadata;
    const now = this.#clock.now();
    const isSame = before?.digest === digest && (write.mayCreate || before.uid === uid) && now - before.at < FORGET_MS;
    const count = isSame ? before.count + 1 : 1;
    this.#written.set(place, { digest, uid, count, at: now });
    if (count >= FREE_WRITES) {
      const { kind } = type;
      const said = 'somebody else changes what is written here again and again; it is put back more and more seldom';
      this.#log.warn({ kind, ...key, subresource: options?.subresource, times: count, waitMs: gapAfter(count) }, said);
    }
    return made;
  }

  /** Whoever removes an object may make it anew. */
  removed(type: ResourceType, key: ObjectKey): void {
    this.#written.delete(placeOf(type, key, undefined));
  }

  #check({ type, key }: Write, { count, at }: SameWrites): void {
    const waitMs = at + gapAfter(count) - this.#clock.now();
    if (waitMs > 0) {
      // The same text each time: it may become part of a status.
      throw new Waiting(
        CONTESTED_REASON,
        waitMs,
        `${type.kind} ${key.name} is changed by somebody else again and again, and put back more and more seldom: find out who writes it, such as a second controller that runs without an election`,
      );
    }
  }

  #sweep(): void {
    const now = this.#clock.now();
    if (now - this.#sweptAt < FORGET_MS) {
      return;
    }
    this.#sweptAt = now;
    for (const [place, { at }] of this.#written) {
      if (now - at >= FORGET_MS) {
        this.#written.delete(place);
      }
    }
  }
}

/** How long the next write waits after so many that said the same. Milliseconds. */
function gapAfter(count: number): number {
  return count < FREE_WRITES ? 0 : Math.min(FIRST_GAP_MS * 2 ** (count - FREE_WRITES), MAX_GAP_MS);
}

function placeOf(type: ResourceType, { namespace = '', name }: ObjectKey, subresource = ''): string {
  return [groupResourceOf(type), namespace, name, subresource].join('/');
}

/** What an update changes: a subresource, or all but the status. */
function partOf(
  { status, ...object }: KubernetesObject & { readonly status?: unknown },
  options: SubresourceOptions | undefined,
): unknown {
  return options?.subresource === 'status' ? status : sayingOf(object);
}

function patched({ type, body }: Patch): unknown {
  return [type, isJsonObject(body) ? sayingOf(body) : body];
}

function sayingOf({ metadata, ...object }: { readonly metadata?: unknown }): unknown {
  const notes = Object.entries(isJsonObject(metadata) ? metadata : {});
  return { ...object, metadata: Object.fromEntries(notes.filter(([name]) => !NOTES.has(name))) };
}

function textOf(content: unknown): string {
  return JSON.stringify(content, (key, value: unknown) => (key === CONDITION_NOTE ? undefined : value)) ?? '';
}
