// What clients of the webhook for our own kinds may cost. One that sends reviews without end must not keep others from
// writing policies.
import { RequestRefusal } from '../../https/index.ts';
import { TokenBucket, type TokenBucketOptions } from '../../runtime/index.ts';
import { KeptEntries } from '../../values/index.ts';
import type { ReviewCaller } from './review-callers.ts';

/**
 * Units of one user of API servers: a unit is a review, 64 KiB of one, or an access review. A GitOps controller that applies the
 * policies of thousands of namespaces needs some four for each.
 */
const USER_UNITS: TokenBucketOptions = { perSecond: 500, burst: 2_000 };
/** Units of one address that is no API server's, as far as known. The largest policy takes up to 250. */
const ADDRESS_UNITS: TokenBucketOptions = { perSecond: 32, burst: 256 };
/** Units of all such addresses together: a fraction of what API servers answer in a second. */
const ALL_ADDRESSES_UNITS: TokenBucketOptions = { perSecond: 128, burst: 1_024 };
/** Reviews under way of one such address, and of all: each may take its whole deadline, and its client may be gone. */
const MAX_PENDING_OF_ADDRESS = 4;
const MAX_PENDING = 32;
/** Users and addresses that are remembered. One that is forgotten begins with a full budget. */
const MAX_SOURCES = 10_000;
/** Bytes of a review that cost one unit. Most policies are smaller. */
const UNIT_BYTES = 64 * 1024;

/** A budget for each user of API servers, and for each other address, in all of which API servers have no part. */
export class ReviewBudget {
  readonly #now: () => number;
  readonly #users = new SourceBuckets(USER_UNITS);
  readonly #addresses = new SourceBuckets(ADDRESS_UNITS);
  readonly #allAddresses = new TokenBucket(ALL_ADDRESSES_UNITS);
  /** Reviews under way by address. */
  readonly #pending = new Map<string, number>();
  #allPending = 0;

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Takes units of a caller that is no API server.
   * @throws RequestRefusal 429
   */
  takeOfAddress({ address, isApiServer }: ReviewCaller, units: number): void {
    const now = this.#now();
    if (!isApiServer && !(this.#addresses.take(address, units, now) && this.#allAddresses.take(now, units))) {
      throw tooMany();
    }
  }

  /**
   * Counts a review of a caller that is no API server, until the returned function is called.
   * @throws RequestRefusal 429
   */
  begin({ address, isApiServer }: ReviewCaller): () => void {
    if (isApiServer) {
      return () => undefined;
    }
    const pending = this.#pending.get(address) ?? 0;
    if (pending >= MAX_PENDING_OF_ADDRESS || this.#allPending >= MAX_PENDING) {
      throw tooMany();
    }
    this.#pending.set(address, pending + 1);
    this.#allPending += 1;
    return () => this.#end(address);
  }

  #end(address: string): void {
    const pending = (this.#pending.get(address) ?? 0) - 1;
    this.#allPending -= 1;
    if (pending > 0) {
      this.#pending.set(address, pending);
    } else {
      this.#pending.delete(address);
    }
  }

  /** Takes units of a user of API servers. Returns whether there are enough. Other callers name any user. */
  takeOfUser({ isApiServer }: ReviewCaller, username: string, units: number): boolean {
    return !isApiServer || this.#users.take(username, units, this.#now());
  }
}

function tooMany(): RequestRefusal {
  return new RequestRefusal(429, 'too many reviews from this address; try again later');
}

/** The units that reading a review costs. */
export function unitsOfBody(bytes: number): number {
  return Math.ceil(bytes / UNIT_BYTES);
}

/** Token buckets by source. The one that was used the longest time ago is forgotten first. */
class SourceBuckets {
  readonly #options: TokenBucketOptions;
  readonly #buckets = new KeptEntries<string, TokenBucket>({ maxEntries: MAX_SOURCES });

  constructor(options: TokenBucketOptions) {
    this.#options = options;
  }

  take(source: string, units: number, now: number): boolean {
    const bucket = this.#buckets.get(source) ?? new TokenBucket(this.#options);
    this.#buckets.set(source, bucket);
    return bucket.take(now, units);
  }
}
