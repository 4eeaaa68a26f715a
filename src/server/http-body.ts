// Reading a request's body under limits, and answering with JSON.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestRefused } from './errors.ts';

/**
 * The largest body that is read: the API server stores objects of up to 3 MiB as JSON, a review of an update carries
 * two of them, and 1 MiB is for what is around them. The same bound as controller-runtime's. Bytes.
 */
export const MAX_BODY_BYTES = 7 * 1024 * 1024;

/** Bytes of bodies that are on their way at once: as many as may wait or run, see MAX_HELD_BYTES of the worker pool. */
export const MAX_RECEIVING_BYTES = 256 * 1024 * 1024;

/** Counts the bytes of bodies that are on their way, over all connections of a server. */
export class BodyBudget {
  #used = 0;

  /** Whether there is room for this many more bytes; they are counted until they are given back. */
  take(bytes: number): boolean {
    this.#used += bytes;
    return this.#used <= MAX_RECEIVING_BYTES;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }
}

/**
 * Reads the whole body into memory of its own.
 * @throws RequestRefused 413 for a body that is too large, 400 for one that ends early, 503 when the budget is used up.
 */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  done: (error: RequestRefused | undefined, body: Uint8Array) => void,
): void {
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  if (declared > MAX_BODY_BYTES) {
    done(tooLarge(), EMPTY);
    return;
  }
  let chunks: Buffer[] = [];
  let size = 0;
  let finished = false;
  const finish = (error: RequestRefused | undefined, body: Uint8Array = EMPTY): void => {
    if (!finished) {
      finished = true;
      chunks = [];
      budget.giveBack(size);
      done(error, body);
    }
  };
  request.on('data', (chunk: Buffer) => {
    if (finished) {
      return;
    }
    size += chunk.length;
    if (!budget.take(chunk.length)) {
      finish(new RequestRefused(503, 'more requests are on their way than can be held; try again later'));
    } else if (size > MAX_BODY_BYTES) {
      finish(tooLarge());
    } else {
      chunks.push(chunk);
    }
  });
  request.on('end', () => (finished ? undefined : finish(undefined, joined(chunks, size))));
  request.on('error', () => finish(new RequestRefused(400, 'the request ended before its body was complete')));
  request.on('aborted', () => finish(new RequestRefused(400, 'the request ended before its body was complete')));
}

const EMPTY = new Uint8Array(0);

/** One array with a buffer of its own: a view into a shared pool would be copied whole with every message to a worker. */
function joined(chunks: readonly Buffer[], size: number): Uint8Array {
  const body = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    body.set(chunk, offset);
    offset += chunk.length;
  }
  return body;
}

function tooLarge(): RequestRefused {
  return new RequestRefused(413, `expected a body of at most ${MAX_BODY_BYTES} bytes (7 MiB)`);
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
