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
import { KeptEntries } from '../values/index.ts';
import { type Clock, SYSTEM_CLOCK } from './clock.ts';
import { Waiting } from './reconcile-outcome.ts';

/** Equal writes to an object that are sent without delay. */
const WRITES_WITHOUT_DELAY = 4;
/** Delay of the first delayed write; doubles with each one. Milliseconds. */
const FIRST_DELAY_MS = 1_000;
/** Longest delay: a change by another writer stands no longer than this. Milliseconds. */
const MAX_DELAY_MS = 60_000;
/** After this time without a write, an object is no longer contested. Milliseconds. */
const FORGET_MS = 2 * MAX_DELAY_MS;

/** The reason of `Waiting` for a write that another writer keeps undoing. */
export const CONTESTED_REASON = 'Contested';

/** Metadata that the cluster sets; not compared between writes. */
const SERVER_METADATA: ReadonlySet<string> = new Set([
  'creationTimestamp',
  'generation',
  'managedFields',
  'resourceVersion',
  'uid',
]);
/** The field of a condition that is not compared between writes. */
const SERVER_CONDITION_FIELD = 'lastTransitionTime';

/** Consecutive equal writes to an object or one of its subresources. */
interface EqualWrites {
  readonly digest: string;
  readonly uid: string | undefined;
  readonly count: number;
  /** Time of the last one, in milliseconds of `Clock.now`. */
  readonly at: number;
}

interface Write {
  readonly type: ResourceType;
  readonly key: ObjectKey;
  readonly content: unknown;
  /** Whether the write may create the object: a new uid is then expected. */
  readonly mayCreate: boolean;
  readonly options: (WriteOptions & SubresourceOptions) | undefined;
}

export interface WriteBackoffOptions {
  readonly log: Logger;
  readonly clock?: Clock;
}

/**
 * The cluster with backoff for contested writes. Two writers that disagree, such as controllers of two versions without
 * leader election, would overwrite each other as fast as they can. Here equal writes to an object are sent a few times
 * at once, then with growing delays; in between, writes throw `Waiting`. A write that differs from the previous one of
 * this process is never delayed, nor is a dry run.
 */
export function withWriteBackoff(cluster: Cluster, options: WriteBackoffOptions): Cluster {
  const backoff = new WriteBackoff(options);
  return {
    discovery: cluster.discovery,
    ...(cluster.openApi === undefined ? {} : { openApi: cluster.openApi }),
    get: (type, key, rest) => cluster.get(type, key, rest),
    list: (type, rest) => cluster.list(type, rest),
    watch: (type, rest) => cluster.watch(type, rest),
    // Two writers that disagree update an object. One that deletes it repeatedly should not succeed for long.
    create: (type, object, rest) => cluster.create(type, object, rest),
    update: (type, object, rest) =>
      backoff.write(
        { type, key: keyOf(object), content: updatedPart(object, rest), mayCreate: false, options: rest },
        () => cluster.update(type, object, rest),
      ),
    patch: (type, key, patch, rest) =>
      backoff.write({ type, key, content: patchedPart(patch), mayCreate: patch.type === 'apply', options: rest }, () =>
        cluster.patch(type, key, patch, rest),
      ),
    delete: async (type, key, rest) => {
      const left = await cluster.delete(type, key, rest);
      backoff.removed(type, key);
      return left;
    },
    deleteCollection: (type, rest) => cluster.deleteCollection(type, rest),
  };
}

/** The writes of one process. */
export class WriteBackoff {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #writes = new KeptEntries<string, EqualWrites>();

  constructor({ log, clock = SYSTEM_CLOCK }: WriteBackoffOptions) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Number of objects and subresources whose last write is known. */
  get size(): number {
    return this.#writes.size;
  }

  /** @throws Waiting when the same was written too often */
  async write<T extends KubernetesObject>(write: Write, send: () => Promise<T>): Promise<T> {
    const { type, key, options } = write;
    // With generateName, each write creates another object.
    if (options?.dryRun === true || key.name === '') {
      return await send();
    }
    const target = targetOf(type, key, options?.subresource);
    const digest = createHash('sha256').update(canonicalText(write.content)).digest('base64');
    const startedAt = this.#clock.now();
    this.#writes.deleteOldest(({ at }) => startedAt - at >= FORGET_MS);
    const before = this.#writes.get(target);
    if (before?.digest === digest) {
      this.#check(write, before);
    }
    const written = await send();
    const { uid } = written.metadata;
    const now = this.#clock.now();
    const isRepeat =
      before?.digest === digest && (write.mayCreate || before.uid === uid) && now - before.at < FORGET_MS;
    const count = isRepeat ? before.count + 1 : 1;
    this.#writes.set(target, { digest, uid, count, at: now });
    if (count >= WRITES_WITHOUT_DELAY) {
      const { kind } = type;
      this.#log.warn(
        { kind, ...key, subresource: options?.subresource, times: count, waitMs: delayAfter(count) },
        'another writer keeps changing this object; it is restored with growing delays',
      );
    }
    return written;
  }

  /** After a deletion by this process, the object may be created again at once. */
  removed(type: ResourceType, key: ObjectKey): void {
    this.#writes.delete(targetOf(type, key, undefined));
  }

  #check({ type, key }: Write, { count, at }: EqualWrites): void {
    const waitMs = at + delayAfter(count) - this.#clock.now();
    if (waitMs > 0) {
      // The text is constant, because it may become part of a status.
      throw new Waiting(
        CONTESTED_REASON,
        waitMs,
        `${type.kind} ${key.name} is changed by another writer again and again, and restored with growing delays: find out who writes it, such as a second controller that runs without an election`,
      );
    }
  }
}

/** Delay of the next write after `count` equal ones. Milliseconds. */
function delayAfter(count: number): number {
  return count < WRITES_WITHOUT_DELAY
    ? 0
    : Math.min(FIRST_DELAY_MS * 2 ** (count - WRITES_WITHOUT_DELAY), MAX_DELAY_MS);
}

function targetOf(type: ResourceType, { namespace = '', name }: ObjectKey, subresource = ''): string {
  return [groupResourceOf(type), namespace, name, subresource].join('/');
}

/** The part of the object that an update writes: the status, or all but the status. */
function updatedPart(
  { status, ...object }: KubernetesObject & { readonly status?: unknown },
  options: SubresourceOptions | undefined,
): unknown {
  return options?.subresource === 'status' ? status : withoutServerMetadata(object);
}

function patchedPart({ type, body }: Patch): unknown {
  return [type, isJsonObject(body) ? withoutServerMetadata(body) : body];
}

function withoutServerMetadata({ metadata, ...object }: { readonly metadata?: unknown }): unknown {
  const entries = Object.entries(isJsonObject(metadata) ? metadata : {});
  return { ...object, metadata: Object.fromEntries(entries.filter(([name]) => !SERVER_METADATA.has(name))) };
}

function canonicalText(content: unknown): string {
  return JSON.stringify(content, (key, value: unknown) => (key === SERVER_CONDITION_FIELD ? undefined : value)) ?? '';
}
