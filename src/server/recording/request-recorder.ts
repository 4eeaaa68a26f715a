import { redactedReview } from './redacted-review.ts';

/** Requests of one policy that may be kept. */
export const MAX_RECORDED_REQUESTS = 1_000;
/** Larger requests are not recorded: pods have some kilobytes. Bytes. */
const MAX_REQUEST_BYTES = 128 * 1024;
/** All that is kept, of which the oldest goes first. Bytes. */
const MAX_RECORDED_BYTES = 32 * 1024 * 1024;
/** Recorded in one second: each is read in the thread that answers all requests. */
const MAX_PER_SECOND = 50;

interface Recorded {
  readonly review: Buffer;
  readonly policies: Set<string>;
}

/** The last requests of each policy, in memory, without secrets. */
export class RequestRecorder {
  readonly #most: number;
  /** The oldest first. */
  readonly #recorded = new Set<Recorded>();
  readonly #counts = new Map<string, number>();
  #bytes = 0;
  #second = 0;
  #inSecond = 0;

  /** @param most requests of one policy */
  constructor(most: number) {
    this.#most = Math.min(most, MAX_RECORDED_REQUESTS);
  }

  /** @param policies that judged it @param now milliseconds since an arbitrary start */
  record(body: Uint8Array, policies: readonly string[], now: number = performance.now()): void {
    if (policies.length === 0 || body.byteLength > MAX_REQUEST_BYTES || !this.#isInPace(now)) {
      return;
    }
    const review = redactedReview(body);
    if (review === undefined) {
      return;
    }
    const added = { review, policies: new Set(policies) };
    this.#recorded.add(added);
    this.#bytes += review.byteLength;
    for (const policy of added.policies) {
      const count = (this.#counts.get(policy) ?? 0) + 1;
      this.#counts.set(policy, count);
      if (count > this.#most) {
        this.#dropOldestOf(policy);
      }
    }
    for (const oldest of this.#recorded) {
      if (this.#bytes <= MAX_RECORDED_BYTES) {
        break;
      }
      this.#drop(oldest);
    }
  }

  /** All of them, as a List of AdmissionReviews in JSON. */
  list(): Buffer {
    const items = [...this.#recorded].flatMap(({ review }, index) => (index === 0 ? [review] : [COMMA, review]));
    return Buffer.concat([LIST_START, ...items, LIST_END]);
  }

  #isInPace(now: number): boolean {
    const second = Math.floor(now / 1_000);
    this.#inSecond = second === this.#second ? this.#inSecond + 1 : 1;
    this.#second = second;
    return this.#inSecond <= MAX_PER_SECOND;
  }

  #dropOldestOf(policy: string): void {
    for (const recorded of this.#recorded) {
      if (recorded.policies.has(policy)) {
        this.#forget(recorded, policy);
        if (recorded.policies.size === 0) {
          this.#drop(recorded);
        }
        return;
      }
    }
  }

  #drop(recorded: Recorded): void {
    for (const policy of recorded.policies) {
      this.#forget(recorded, policy);
    }
    this.#recorded.delete(recorded);
    this.#bytes -= recorded.review.byteLength;
  }

  #forget({ policies }: Recorded, policy: string): void {
    policies.delete(policy);
    const count = (this.#counts.get(policy) ?? 1) - 1;
    if (count === 0) {
      this.#counts.delete(policy);
    } else {
      this.#counts.set(policy, count);
    }
  }
}

const LIST_START = Buffer.from('{"apiVersion":"v1","kind":"List","items":[');
const LIST_END = Buffer.from(']}\n');
const COMMA = Buffer.from(',\n');
