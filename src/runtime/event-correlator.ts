// Decides which events are written, as client-go's EventCorrelator does: it counts repeats, combines similar events,
// and limits the rate for each object. No I/O.
import type { KubernetesObject } from '../resources/index.ts';
import { TokenBucket } from './token-bucket.ts';
import type { TokenBucketOptions } from './token-bucket.ts';
import { inertText, KeptEntries, shortened } from '../values/index.ts';

export type EventType = 'Normal' | 'Warning';

/** `core/v1` ObjectReference. */
interface EventReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** An event and its number of occurrences. */
export interface EventRecord {
  readonly about: EventReference;
  readonly type: EventType;
  readonly reason: string;
  message: string;
  count: number;
  /** Milliseconds since 1970. */
  readonly firstAt: number;
  lastAt: number;
  /** Its name in the cluster; undefined until it is created. */
  name: string | undefined;
}

/** Entries of each map. As client-go. A record takes about 1 KiB. */
export const MAX_REMEMBERED = 4096;
/** Writes for one object and reason: a burst for a busy reconciliation, then one in five minutes. As client-go. */
export const OBJECT_RATE: TokenBucketOptions = { perSecond: 1 / 300, burst: 25 };
/**
 * Distinct messages of one object and reason within {@link SIMILAR_WINDOW_MS}; further ones are combined. As client-go.
 */
export const MAX_SIMILAR = 10;
/** Milliseconds. */
export const SIMILAR_WINDOW_MS = 10 * 60_000;
/** API servers delete an event an hour after its last write, so a later repeat is a new one (`--event-ttl`). Milliseconds. */
export const RECORD_MS = 3_600_000;
/** Prefix of the message of a combined event. As client-go. */
export const COMBINED_PREFIX = '(combined from similar events): ';
/** Longest message that the events API accepts. */
export const MAX_NOTE_LENGTH = 1024;
/** Longest reason that the events API accepts. */
const MAX_REASON_LENGTH = 128;

interface Similar {
  readonly messages: Set<string>;
  lastAt: number;
}

/** Maps events to records to write. */
export class EventCorrelator {
  readonly #records = new KeptEntries<string, EventRecord>({ maxEntries: MAX_REMEMBERED });
  readonly #similar = new KeptEntries<string, Similar>({ maxEntries: MAX_REMEMBERED });
  readonly #buckets = new KeptEntries<string, TokenBucket>({ maxEntries: MAX_REMEMBERED });

  /** The record to write. Undefined if the object's reason is over its rate; a known record still counts the event. */
  correlate(
    object: KubernetesObject,
    type: EventType,
    reason: string,
    message: string,
    now: number,
  ): EventRecord | undefined {
    this.#forget(now);
    const about = referenceTo(object);
    const subject = JSON.stringify([about.apiVersion, about.kind, about.namespace, about.name, about.uid]);
    const kind = JSON.stringify([subject, type, reason]);
    // Shortened first, because messages can have any length and records keep them.
    const note = inertText(shortened(message, MAX_NOTE_LENGTH));
    const isCombined = this.#isOneOfMany(kind, note, now);
    const text = isCombined ? shortened(COMBINED_PREFIX + note, MAX_NOTE_LENGTH) : note;
    const key = isCombined ? kind : JSON.stringify([kind, note]);
    const known = this.#records.get(key);
    // Unlike client-go: an event that repeats every minute must not use up the rate of a failure.
    const source = JSON.stringify([subject, reason]);
    const bucket = this.#buckets.get(source) ?? new TokenBucket(OBJECT_RATE);
    this.#buckets.set(source, bucket);
    if (known !== undefined) {
      known.count += 1;
      known.lastAt = Math.max(known.lastAt, now);
      known.message = text;
      this.#records.set(key, known);
      return bucket.take(now) ? known : undefined;
    }
    if (!bucket.take(now)) {
      return undefined;
    }
    const record: EventRecord = {
      about,
      type,
      reason: shortened(reason, MAX_REASON_LENGTH),
      message: text,
      count: 1,
      firstAt: now,
      lastAt: now,
      name: undefined,
    };
    this.#records.set(key, record);
    return record;
  }

  /** Number of entries in all maps. */
  get remembered(): number {
    return this.#records.size + this.#similar.size + this.#buckets.size;
  }

  /** Forgets what changes no decision any more. */
  #forget(now: number): void {
    this.#records.deleteOldest(({ lastAt }) => now - lastAt > RECORD_MS);
    this.#similar.deleteOldest(({ lastAt }) => now - lastAt > SIMILAR_WINDOW_MS);
    this.#buckets.deleteOldest((bucket) => bucket.isFull(now));
  }

  #isOneOfMany(kind: string, message: string, now: number): boolean {
    const before = this.#similar.get(kind);
    const similar =
      before === undefined || now - before.lastAt > SIMILAR_WINDOW_MS
        ? { messages: new Set<string>(), lastAt: now }
        : before;
    similar.lastAt = now;
    if (similar.messages.size < MAX_SIMILAR) {
      similar.messages.add(message);
    }
    this.#similar.set(kind, similar);
    return similar.messages.size >= MAX_SIMILAR && !similar.messages.has(message);
  }
}

function referenceTo({ apiVersion, kind, metadata }: KubernetesObject): EventReference {
  const { namespace, name = '', uid, resourceVersion } = metadata;
  return {
    apiVersion,
    kind,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}
