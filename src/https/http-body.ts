// Reads request bodies under limits, and sends JSON.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestRefusal } from './errors.ts';

/**
 * Maximum memory of bodies that are being received: as much as may wait or run, see MAX_HELD_BYTES of the worker pool.
 */
const MAX_RECEIVING_BYTES = 256 * 1024 * 1024;

/** Initial buffer of a body; it doubles as needed. Most reviews are smaller. Bytes. */
const FIRST_BYTES = 64 * 1024;

/**
 * The share of the memory reserved for the first {@link FIRST_BYTES} of bodies, so that clients that send large bodies slowly
 * cannot block ordinary reviews, of which some 13,000 fit in a quarter of {@link MAX_RECEIVING_BYTES}.
 */
const RESERVED_SHARE = 1 / 4;

/** Counts the memory of bodies that are being received, over all connections of a server. */
export class BodyBudget {
  /** Of one body. */
  readonly maxBodyBytes: number;
  readonly #maxBytes: number;
  #used = 0;

  /** @param maxBytes of all bodies together; default: {@link MAX_RECEIVING_BYTES} */
  constructor(maxBodyBytes: number, maxBytes: number = MAX_RECEIVING_BYTES) {
    this.maxBodyBytes = maxBodyBytes;
    this.#maxBytes = maxBytes;
  }

  /** Reserves bytes for a growing body. Returns false, without reserving, when there is no room. */
  take(bytes: number, bodySize: number): boolean {
    const limit = bodySize <= FIRST_BYTES ? this.#maxBytes : this.#maxBytes * (1 - RESERVED_SHARE);
    if (this.#used + bytes > limit) {
      return false;
    }
    this.#used += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }
}

/**
 * Reads the whole body into its own memory: a view of a shared pool would be copied completely with every message to a
 * worker.
 * @throws RequestRefusal 413 for a body that is too large, 400 for an incomplete one, 503 when the budget is used up.
 */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  done: (error: RequestRefusal | undefined, body: Uint8Array) => void,
): void {
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  const { maxBodyBytes } = budget;
  if (declared > maxBodyBytes) {
    done(tooLarge(maxBodyBytes), EMPTY);
    return;
  }
  const expected = Number.isNaN(declared) ? maxBodyBytes : declared;
  // Chunks are copied as they arrive: a list of single bytes would take a hundred times their size.
  let body = EMPTY;
  let size = 0;
  let finished = false;
  const finish = (error: RequestRefusal | undefined): void => {
    if (finished) {
      return;
    }
    finished = true;
    const whole = size === body.length ? body : body.slice(0, size);
    budget.giveBack(body.length);
    body = EMPTY;
    done(error, error === undefined ? whole : EMPTY);
  };
  const grow = (needed: number): boolean => {
    const capacity = Math.max(needed, Math.min(expected, Math.max(FIRST_BYTES, body.length * 2)));
    if (!budget.take(capacity - body.length, capacity)) {
      return false;
    }
    const larger = new Uint8Array(capacity);
    larger.set(body);
    body = larger;
    return true;
  };
  request.on('data', (chunk: Buffer) => {
    if (finished) {
      return;
    }
    const end = size + chunk.length;
    if (end > maxBodyBytes) {
      finish(tooLarge(maxBodyBytes));
    } else if (end > body.length && !grow(end)) {
      finish(new RequestRefusal(503, 'more requests are on their way than can be held; try again later'));
    } else {
      body.set(chunk, size);
      size = end;
      if (size === declared) {
        // The `end` event comes a few steps later.
        finish(undefined);
      }
    }
  });
  request.on('end', () => finish(undefined));
  request.on('error', () => finish(new RequestRefusal(400, 'the request ended before its body was complete')));
  request.on('aborted', () => finish(new RequestRefusal(400, 'the request ended before its body was complete')));
}

const EMPTY = new Uint8Array(0);

function tooLarge(maxBodyBytes: number): RequestRefusal {
  return new RequestRefusal(413, `expected a body of at most ${maxBodyBytes} bytes (${maxBodyBytes / 2 ** 20} MiB)`);
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

/** Answers with an error in the format of Kubewarden's policy server: `{"message", "status"}`. */
export function sendError(response: ServerResponse, status: number, message: string): void {
  if (status === 413 || status === 503) {
    // To keep the connection, the rest of the body would have to be read.
    response.shouldKeepAlive = false;
  }
  sendJson(response, status, JSON.stringify({ message, status }));
}
