// Reading a request's body under limits, and answering with JSON.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestRefused } from './errors.ts';

/**
 * The largest body that is read: the API server stores objects of up to 3 MiB as JSON, a review of an update carries
 * two of them, and 1 MiB is for what is around them. The same bound as controller-runtime's. Bytes.
 */
export const MAX_BODY_BYTES = 7 * 1024 * 1024;

/**
 * Reads the whole body into memory of its own.
 * @throws RequestRefused 413 for a body that is too large, 400 for one that ends early.
 */
export function readBody(
  request: IncomingMessage,
  done: (error: RequestRefused | undefined, body: Uint8Array) => void,
): void {
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  if (declared > MAX_BODY_BYTES) {
    done(tooLarge(), EMPTY);
    return;
  }
  const chunks: Buffer[] = [];
  let size = 0;
  let finished = false;
  const finish = (error: RequestRefused | undefined, body: Uint8Array = EMPTY): void => {
    if (!finished) {
      finished = true;
      done(error, body);
    }
  };
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) {
      finish(tooLarge());
    } else if (!finished) {
      chunks.push(chunk);
    }
  });
  request.on('end', () => finish(undefined, joined(chunks, size)));
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
  if (status === 413) {
    // What is still on its way would have to be read to keep the connection.
    response.shouldKeepAlive = false;
  }
  sendJson(response, status, JSON.stringify({ message, status }));
}
