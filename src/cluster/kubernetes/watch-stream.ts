// A watch stream: one JSON object per line.
import type { Readable } from 'node:stream';
import { isJsonObject } from '../../resources/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import type { WatchEvent } from '../cluster.ts';
import { ClusterError } from '../errors.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { errorOfStatus } from './answer.ts';
import { LineSplitter } from './line-splitter.ts';

/**
 * The events of a stream. Throws ApiError for an ERROR event, ClusterError for a malformed event or a stream that ends
 * within one. Leaving the loop closes the connection.
 * @param silenceMs without a byte for this long, the connection counts as dead.
 */
export async function* watchEvents<T extends KubernetesObject>(
  stream: Readable,
  silenceMs: number,
  request: string,
): AsyncGenerator<WatchEvent<T>, void> {
  const splitter = new LineSplitter();
  let lastChunkAt = performance.now();
  // One interval timer costs less than a timer that every chunk restarts.
  const timer = setInterval(
    () => {
      if (performance.now() - lastChunkAt > silenceMs) {
        stream.destroy(
          new ClusterError(
            'timeout',
            `${request}: nothing was lastChunkAt for ${silenceMs} ms; the connection is taken to be dead`,
          ),
        );
      }
    },
    Math.max(10, silenceMs / 10),
  );
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      for (const line of linesOf(splitter, chunk, request)) {
        yield eventOf<T>(line, request);
        // A slow reader is not a silent server.
        lastChunkAt = performance.now();
      }
      lastChunkAt = performance.now();
    }
    if (splitter.pendingBytes > 0) {
      throw new ClusterError(
        'unreachable',
        `${request}: the stream ended in the middle of an event (${splitter.pendingBytes} bytes of it came)`,
      );
    }
  } finally {
    clearInterval(timer);
    stream.destroy();
  }
}

function linesOf(splitter: LineSplitter, chunk: Buffer, request: string): string[] {
  try {
    return splitter.push(chunk);
  } catch (error) {
    throw malformed(request, errorText(error));
  }
}

/** The event of a line. */
function eventOf<T extends KubernetesObject>(line: string, request: string): WatchEvent<T> {
  let event: unknown;
  try {
    event = parseJson(line);
  } catch {
    throw malformed(request, `expected JSON, got ${JSON.stringify(line.slice(0, 200))}`);
  }
  if (!isJsonObject(event) || !isJsonObject(event['object'])) {
    throw malformed(request, `expected an event with type and object, got ${JSON.stringify(line.slice(0, 200))}`);
  }
  const object: unknown = event['object'];
  switch (event['type']) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
    case 'BOOKMARK':
      return { type: event['type'], object: object as T };
    case 'ERROR':
      throw errorOfStatus(event['object'], 500);
    default:
      throw malformed(request, `expected an event, got one of type ${JSON.stringify(event['type'])}`);
  }
}

function malformed(request: string, what: string): ClusterError {
  return new ClusterError('answer-malformed', `${request}: ${what}`);
}
