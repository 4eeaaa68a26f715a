import { ApiError } from '../../cluster/index.ts';
import type { UserInfo } from '../embedded/request.ts';

/** Its members repair a cluster, so the share of a user does not hold for them, as with flow control of API servers. */
const ADMINISTRATORS = 'system:masters';

/** Limits of concurrent requests. */
export interface RequestLimits {
  readonly all: number;
  /** Below `all`, so that one user leaves room for others. */
  readonly ofUser: number;
}

/** Counts concurrent requests of one sort, in all and for each user. */
export class RequestLimit {
  readonly #what: string;
  readonly #limits: RequestLimits;
  /** By user name. */
  readonly #users = new Map<string, number>();
  #count = 0;

  /** @param what `requests` or `watches`, for messages */
  constructor(what: string, limits: RequestLimits) {
    this.#what = what;
    this.#limits = limits;
  }

  /** Requests that have not ended. */
  get count(): number {
    return this.#count;
  }

  /**
   * Runs a request within the limits.
   * @throws ApiError 429
   */
  async run(user: UserInfo | undefined, answer: () => Promise<void>): Promise<void> {
    const { username = '', groups = [] } = user ?? {};
    const count = this.#users.get(username) ?? 0;
    if (this.#count >= this.#limits.all) {
      throw tooMany(`too many ${this.#what}, please try again later`);
    }
    if (count >= this.#limits.ofUser && !groups.includes(ADMINISTRATORS)) {
      throw tooMany(`too many ${this.#what} of one user, please try again later`);
    }
    this.#count += 1;
    this.#users.set(username, count + 1);
    try {
      await answer();
    } finally {
      this.#count -= 1;
      const left = (this.#users.get(username) ?? 1) - 1;
      if (left === 0) {
        this.#users.delete(username);
      } else {
        this.#users.set(username, left);
      }
    }
  }
}

function tooMany(message: string): ApiError {
  return new ApiError(429, 'TooManyRequests', message, { retryAfterSeconds: 1 });
}
