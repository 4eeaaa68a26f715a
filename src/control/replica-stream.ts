// GET /stream of a replica as messages.
import type { IncomingMessage } from 'node:http';
import { LineSplitter } from '../cluster/index.ts';
import type { Clock } from '../runtime/index.ts';
import { pause } from '../runtime/index.ts';
import { MAX_MESSAGE_BYTES } from './replica-protocol.ts';
import type { ReplicaMessage } from './replica-protocol.ts';
import { parseReplicaMessage } from './replica-message.ts';

/** Longest line; replicas of this version write shorter ones. Bytes. */
export const MAX_LINE_BYTES = 4 * MAX_MESSAGE_BYTES;
/**
 * Bytes read from one replica in {@link WINDOW_MS}: 16 MiB a second. The first report of ten thousand policies (5 MB)
 * takes well below a second, and a replica that floods the stream uses a small part of a processor.
 */
const WINDOW_BYTES = 1.6 * 1024 ** 2;
const WINDOW_MS = 100;

/**
 * The messages of a stream, without those of unknown types.
 * @throws TypeError or RangeError for an invalid message, Error when the connection breaks
 */
export async function* replicaMessages(
  response: IncomingMessage,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<ReplicaMessage, void> {
  if (response.statusCode !== 200) {
    response.destroy();
    throw new TypeError(`expected status 200 of GET /stream, got ${response.statusCode}`);
  }
  const splitter = new LineSplitter(MAX_LINE_BYTES);
  let windowEnd = 0;
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    const now = clock.now();
    if (now >= windowEnd) {
      windowEnd = now + WINDOW_MS;
      bytes = 0;
    }
    bytes += chunk.length;
    for (const line of splitter.push(chunk)) {
      const message = parseReplicaMessage(line);
      if (message !== undefined) {
        yield message;
      }
    }
    if (bytes > WINDOW_BYTES) {
      await pause(clock, windowEnd - now, signal);
    }
  }
}
