import type { ServerResponse } from 'node:http';
import { ApiError } from '../../cluster/index.ts';
import type { UserInfo } from '../embedded/request/request.ts';
import { isAdministrator } from './request-limit.ts';

/** Most bytes of answers that clients have not read: lists of the largest cluster that this one is made for, for a few clients. */
const MAX_UNREAD_ANSWERS = 128 * 1024 * 1024;
/** Of these, those of one user, a quarter, so that one user leaves room for others. Bytes. */
const MAX_UNREAD_ANSWERS_OF_USER = 32 * 1024 * 1024;
/** Smaller answers do not count: what one connection has not read of them is in the buffers of the kernel. Bytes. */
const MIN_COUNTED = 64 * 1024;

/** Limits of unread answers, in bytes. */
export interface UnreadAnswerLimits {
  readonly all: number;
  readonly ofUser: number;
}

interface Held {
  readonly username: string;
  bytes: number;
}

/** The large answers that clients have not read yet, in all and for each user. */
export class UnreadAnswers {
  readonly #limits: UnreadAnswerLimits;
  readonly #held = new Map<ServerResponse, Held>();
  readonly #ofUser = new Map<string, number>();
  #bytes = 0;

  constructor(limits: UnreadAnswerLimits = { all: MAX_UNREAD_ANSWERS, ofUser: MAX_UNREAD_ANSWERS_OF_USER }) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts the body of a response until the client has read it or is gone. A second call replaces the figure of the first. The
   * first answer of a user who has read all others may be larger than the share.
   * @throws ApiError 429
   */
  hold(user: UserInfo | undefined, response: ServerResponse, bytes: number): void {
    const known = this.#held.get(response);
    if (known !== undefined) {
      this.#count(known, bytes - known.bytes);
      return;
    }
    if (bytes < MIN_COUNTED || response.destroyed) {
      return;
    }
    const { username = '' } = user ?? {};
    const own = this.#ofUser.get(username) ?? 0;
    const isBeyondShare = !isAdministrator(user) && own > 0 && own + bytes > this.#limits.ofUser;
    if (isBeyondShare || (this.#bytes > 0 && this.#bytes + bytes > this.#limits.all)) {
      throw refusal(isBeyondShare);
    }
    const held = { username, bytes: 0 };
    this.#held.set(response, held);
    this.#count(held, bytes);
    response.once('close', () => {
      this.#held.delete(response);
      this.#count(held, -held.bytes);
    });
  }

  #count(held: Held, bytes: number): void {
    held.bytes += bytes;
    this.#bytes += bytes;
    const own = (this.#ofUser.get(held.username) ?? 0) + bytes;
    if (own === 0) {
      this.#ofUser.delete(held.username);
    } else {
      this.#ofUser.set(held.username, own);
    }
  }
}

function refusal(isOfUser: boolean): ApiError {
  const whose = isOfUser ? ' of one user' : '';
  const message = `too many bytes of answers${whose} that have not been read: read them, or ask for smaller pages (limit), and try again later`;
  return new ApiError(429, 'TooManyRequests', message, { retryAfterSeconds: 1 });
}
