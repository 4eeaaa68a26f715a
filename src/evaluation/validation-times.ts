import { createHash } from 'node:crypto';
import type { ValidationBudget } from '../engine/index.ts';
import { monotonicNow } from './evaluation-protocol.ts';

/**
 * Recovery from a millisecond of validation, in milliseconds. Whoever writes parameters can choose ever new settings that a policy
 * does not validate in time; in the long run they get a sixtieth of a worker by that.
 */
const RECOVERY = 60;
/** Of the limit of one validation: settings are not validated while more is to recover from. So usual ones never wait. */
const TOLERATED_SHARE = 0.5;
/** A validation that runs for longer, in limits of one, was ended together with its worker: at the timeout of its policy. */
const ENDED_AFTER = 2;
/** Namespaces of policies. Two share an entry rarely: only those whose validation took long matter. 650 KB. */
const ENTRIES = 32_768;
const STARTED_OFFSET = ENTRIES * Float64Array.BYTES_PER_ELEMENT;
const HASHES_OFFSET = 2 * STARTED_OFFSET;
const BYTES = HASHES_OFFSET + ENTRIES * Int32Array.BYTES_PER_ELEMENT;

/**
 * The time that validating settings took, by policy and namespace, in memory that all workers share: an entry stays when a worker
 * is replaced. Racing writes lose at most a note.
 */
export class ValidationTimes implements ValidationBudget {
  readonly buffer: SharedArrayBuffer;
  /** When a namespace has recovered, by entry. */
  readonly #recovered: Float64Array;
  /** When a validation started that has not ended; 0: none. */
  readonly #started: Float64Array;
  readonly #hashes: Int32Array;
  readonly #now: () => number;

  /** @param now a clock of all threads, in milliseconds */
  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(BYTES), now: () => number = monotonicNow) {
    this.buffer = buffer;
    this.#recovered = new Float64Array(buffer, 0, ENTRIES);
    this.#started = new Float64Array(buffer, STARTED_OFFSET, ENTRIES);
    this.#hashes = new Int32Array(buffer, HASHES_OFFSET, ENTRIES);
    this.#now = now;
  }

  waitMs(policy: string, namespace: string, limitMs: number): number {
    const { entry, hash } = entryOf(policy, namespace);
    if (this.#hashes[entry] !== hash) {
      return 0;
    }
    const now = this.#now();
    const started = this.#started[entry] ?? 0;
    const longestMs = limitMs * ENDED_AFTER;
    if (started !== 0 && now - started > longestMs) {
      this.#recovered[entry] = Math.max(this.#recovered[entry] ?? 0, started) + longestMs * RECOVERY;
      this.#started[entry] = 0;
    }
    // One that still runs does not count yet: on a busy machine it may be a quick one that waits for a processor.
    const left = (this.#recovered[entry] ?? 0) - now;
    return Math.max(left - limitMs * TOLERATED_SHARE * RECOVERY, 0);
  }

  started(policy: string, namespace: string): void {
    const { entry, hash } = entryOf(policy, namespace);
    const now = this.#now();
    if (this.#hashes[entry] !== hash) {
      if ((this.#recovered[entry] ?? 0) > now) {
        return;
      }
      this.#hashes[entry] = hash;
      this.#started[entry] = 0;
    }
    // Of two at once, the first one.
    this.#started[entry] ||= now;
  }

  ended(policy: string, namespace: string, ms: number): void {
    const { entry, hash } = entryOf(policy, namespace);
    if (this.#hashes[entry] === hash) {
      this.#started[entry] = 0;
      this.#recovered[entry] = Math.max(this.#recovered[entry] ?? 0, this.#now()) + ms * RECOVERY;
    }
  }
}

function entryOf(policy: string, namespace: string): { readonly entry: number; readonly hash: number } {
  const digest = createHash('sha256')
    .update(JSON.stringify([policy, namespace]))
    .digest();
  return { entry: digest.readUInt32LE(0) % ENTRIES, hash: digest.readInt32LE(4) };
}
