// Reading a request's body under limits, and answering with JSON.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { MAX_REVIEW_BYTES } from '../engine/definition/index.ts';
import { RequestRefused } from './errors.ts';

/** Memory for bodies that are on their way at once: as much as may wait or run, see MAX_HELD_BYTES of the worker pool. */
export const MAX_RECEIVING_BYTES = 256 * 1024 * 1024;

/** What a body is given first; it doubles from there. Most reviews are smaller. Bytes. */
export const FIRST_BYTES = 64 * 1024;

/**
 * The part of {@link MAX_RECEIVING_BYTES} that only the first {@link FIRST_BYTES} of bodies may use: clients that send
 * large bodies slowly cannot keep ordinary reviews out, of which some 13,000 have room here. Bytes.
 */
const RESERVED_BYTES = 64 * 1024 * 1024;

/** Counts the memory for bodies that are on their way, over all connections of a server. */
export class BodyBudget {
  #used = 0;

  /** Counts bytes by which a body grows, until they are given back. False, and none are counted, when there is no room. */
  take(bytes: number, bodySize: number): boolean {
    const limit = bodySize <= FIRST_BYTES ? MAX_RECEIVING_BYTES : MAX_RECEIVING_BYTES - RESERVED_BYTES;
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
 * Reads the whole body into memory of its own: a view into a shared pool would be copied whole with every message to a
 * worker.
 * @throws RequestRefused 413 for a body that is too large, 400 for one that ends early, 503 when the budget is used up.
 */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  done: (error: RequestRefused | undefined, body: Uint8Array) => void,
): void {
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  if (declared > MAX_REVIEW_BYTES) {
    done(tooLarge(), EMPTY);
    return;
  }
  const expected = Number.isNaN(declared) ? MAX_REVIEW_BYTES : declared;
  // Chunks are copied as they come: a client that sends single bytes would make a list of them cost a hundredfold.
  let body = EMPTY;
  let size = 0;
  let finished = false;
  const finish = (error: RequestRefused | undefined): void => {
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
    if (end > MAX_REVIEW_BYTES) {
      finish(tooLarge());
    } else if (end > body.length && !grow(end)) {
      finish(new RequestRefused(503, 'more requests are on their way than can be held; try again later'));
    } else {
      body.set(chunk, size);
      size = end;
      if (size === declared) {
        // The end itself is told of some steps later.
        finish(undefined);
      }
    }
  });
  request.on('end', () => finish(undefined));
  request.on('error', () => finish(new RequestRefused(400, 'the request ended before its body was complete')));
  request.on('aborted', () => finish(new RequestRefused(400, 'the request ended before its body was complete')));
}

const EMPTY = new Uint8Array(0);

function tooLarge(): RequestRefused {
  return new RequestRefused(413, `expected a body of at most ${MAX_REVIEW_BYTES} bytes (7 MiB)`);
}

/** Answers with a JSON text. */
export function sendJson(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

/** Answers with an error in the shape that Kubewarden's policy server has: `{"message", "status"}`. */
export function sendError(response: ServerResponse, status: number, message: string): void {
  if (status === 413 || status === 503) {
    // What is still on its way would have to be read to keep the connection.
    response.shouldKeepAlive = false;
  }
  sendJson(response, status, JSON.stringify({ message, status }));
}
