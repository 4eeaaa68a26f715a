import { ApiError } from '../../cluster/index.ts';
import type { UserInfo } from '../embedded/request/request.ts';

/** Its members repair a cluster, so the share of a user does not hold for them, as with flow control of API servers. */
const ADMINISTRATORS = 'system:masters';
/** Longest wait of a request, as in API servers: a quarter of the minute that a request may take. Milliseconds. */
const MAX_WAIT_MS = 15_000;

/** Limits of concurrent requests. */
export interface RequestLimits {
  readonly all: number;
  /** Below `all`, so that one user leaves room for others. */
  readonly ofUser: number;
  /** Further requests, which wait until others have ended. Default: none. */
  readonly waiting?: { readonly all: number; readonly ofUser: number };
}

/** Whether the shares of users do not hold for a user. */
export function isAdministrator(user: UserInfo | undefined): boolean {
  return user?.groups.includes(ADMINISTRATORS) === true;
}

/** The requests of one user. */
interface Share {
  readonly username: string;
  readonly isAdministrator: boolean;
  running: number;
  /** Starts the requests that wait, in the order of their arrival. */
  readonly waiting: Set<() => void>;
}

/** Counts concurrent requests of one sort, in all and for each user. Users take turns when requests wait. */
export class RequestLimit {
  readonly #what: string;
  readonly #limits: RequestLimits;
  /** By user name; the user whose turn is next is first. */
  readonly #shares = new Map<string, Share>();
  #running = 0;
  #waiting = 0;

  /** @param what `requests` or `watches`, for messages */
  constructor(what: string, limits: RequestLimits) {
    this.#what = what;
    this.#limits = limits;
  }

  /** Requests that have not ended. */
  get count(): number {
    return this.#running + this.#waiting;
  }

  /**
   * Runs a request within the limits.
   * @param clientGone ends its wait
   * @throws ApiError 429
   */
  async run(user: UserInfo | undefined, answer: () => Promise<void>, clientGone?: AbortSignal): Promise<void> {
    const share = this.#shareOf(user);
    try {
      if (!this.#hasRoom(share)) {
        await this.#wait(share, clientGone);
      } else {
        this.#begin(share);
      }
      try {
        await answer();
      } finally {
        this.#running -= 1;
        share.running -= 1;
      }
    } finally {
      this.#beginWaiting();
      if (share.running + share.waiting.size === 0) {
        this.#shares.delete(share.username);
      }
    }
  }

  #shareOf(user: UserInfo | undefined): Share {
    const { username = '' } = user ?? {};
    const known = this.#shares.get(username);
    const share = known ?? { username, isAdministrator: isAdministrator(user), running: 0, waiting: new Set() };
    this.#shares.set(username, share);
    return share;
  }

  #hasRoom({ running, isAdministrator }: Share): boolean {
    return this.#running < this.#limits.all && (isAdministrator || running < this.#limits.ofUser);
  }

  #begin(share: Share): void {
    this.#running += 1;
    share.running += 1;
  }

  /** Resolves when the request has begun. */
  async #wait(share: Share, clientGone: AbortSignal | undefined): Promise<void> {
    const { all, ofUser } = this.#limits.waiting ?? { all: 0, ofUser: 0 };
    if (this.#waiting >= all || share.waiting.size >= ofUser) {
      throw this.#refusal(share);
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (): void => reject(clientGone?.reason);
    const timer = setTimeout(() => reject(this.#refusal(share)), MAX_WAIT_MS);
    clientGone?.addEventListener('abort', leave, { once: true });
    share.waiting.add(resolve);
    this.#waiting += 1;
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      clientGone?.removeEventListener('abort', leave);
      // Still there if the wait has failed.
      this.#waiting -= share.waiting.delete(resolve) ? 1 : 0;
    }
  }

  /** Begins requests that wait, one of each user in turn, while there is room. */
  #beginWaiting(): void {
    for (const share of this.#shares.values()) {
      if (this.#running >= this.#limits.all || this.#waiting === 0) {
        return;
      }
      const [begin] = share.waiting;
      if (begin !== undefined && this.#hasRoom(share)) {
        share.waiting.delete(begin);
        this.#waiting -= 1;
        this.#begin(share);
        // The iteration comes to it again, after the other users.
        this.#shares.delete(share.username);
        this.#shares.set(share.username, share);
        begin();
      }
    }
  }

  #refusal(share: Share): ApiError {
    const whose = this.#running < this.#limits.all && !share.isAdministrator ? ' of one user' : '';
    const message = `too many ${this.#what}${whose}, please try again later`;
    return new ApiError(429, 'TooManyRequests', message, { retryAfterSeconds: 1 });
  }
}
