// A watch as an HTTP stream: one JSON object per line.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ApiError } from '../../cluster/index.ts';
import type { WatchEvent } from '../../cluster/index.ts';
import { apiVersionOf } from '../../resources/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { type EventFormat, type EventLines, WHOLE_OBJECTS } from './event-lines.ts';
import type { EventTurns } from './event-turns.ts';
import { formattedObject, tableOf } from './table.ts';
import type { ResponseForm } from './table.ts';
import type { UnreadEvents } from './unread-events.ts';

/**
 * Time limit for a client that does not read. The kernel buffers a few MiB for it; later events wait in the cluster's
 * history, not in memory of the stream. Milliseconds.
 */
const SLOW_WATCHER_MS = 30_000;

/** How a watch ended, for the log. */
export type WatchEnd = 'ended' | 'client-gone' | 'client-slow' | 'failed';

/** One watch request. */
export interface WatchStream {
  readonly response: ServerResponse;
  /** Name of the user. */
  readonly user: string;
  readonly definition: ResourceDefinition;
  readonly form: ResponseForm;
  /** Of all watches. */
  readonly lines: EventLines;
  /** Of all watches. */
  readonly turns: EventTurns;
  /** Of all watches. */
  readonly unread: UnreadEvents;
  /** Default: {@link SLOW_WATCHER_MS}. */
  readonly slowWatcherMs?: number;
  readonly now: () => number;
  /** Ends the watch: the client is gone, or the gateway stops. */
  readonly signal: AbortSignal;
}

/**
 * Sends events until the watch ends or the client stops reading. An error before the first event becomes an error response;
 * a later error, and 410 `Expired`, becomes an `ERROR` event.
 * @throws ApiError when the watch fails before it begins.
 */
export async function sendWatch(stream: WatchStream, events: AsyncIterable<WatchEvent>): Promise<WatchEnd> {
  const { response } = stream;
  const iterator = events[Symbol.asyncIterator]();
  let hasColumns = true;
  try {
    let next = iterator.next();
    const early = await immediateError(next);
    if (early !== undefined && early.code !== 410) {
      throw early;
    }
    // The first event may come much later than the headers.
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    response.socket?.setTimeout(0);
    for (;;) {
      const { done, value } = await next;
      if (done === true) {
        return 'ended';
      }
      await writeInTurn(stream, value, hasColumns);
      hasColumns &&= value.type === 'BOOKMARK';
      if (response.writableNeedDrain && !(await drained(stream))) {
        return response.destroyed ? 'client-gone' : 'client-slow';
      }
      if (response.destroyed) {
        return 'client-gone';
      }
      next = iterator.next();
    }
  } catch (error) {
    if (!response.headersSent && !stream.signal.aborted) {
      throw error;
    }
    if (response.destroyed || stream.signal.aborted) {
      return response.destroyed ? 'client-gone' : 'ended';
    }
    const refusal = error instanceof ApiError ? error : ApiError.internal('the watch failed', error);
    response.write(`${JSON.stringify({ type: 'ERROR', object: refusal.toStatus() })}\n`);
    return 'failed';
  } finally {
    // Not awaited, because a generator that waits for a change ends only with its signal.
    void Promise.resolve(iterator.return?.()).catch(() => undefined);
  }
}

/** The error of a watch that fails at once. */
async function immediateError(next: Promise<unknown>): Promise<ApiError | undefined> {
  const settled = next.then(
    () => undefined,
    (error: unknown) => (error instanceof ApiError ? error : undefined),
  );
  return await Promise.race([settled, nextTurn(undefined)]);
}

/** Encodes and writes an event in a turn of the event loop that has room for it. */
async function writeInTurn(stream: WatchStream, event: WatchEvent, hasColumns: boolean): Promise<void> {
  const { response, turns, user, signal } = stream;
  await turns.write(user, () => {
    if (response.destroyed || signal.aborted) {
      return 0;
    }
    const line = lineOf(stream, event, hasColumns);
    response.write(line);
    return line.length;
  });
}

/** Waits until the client has read the written events. False when it does not read, gives way, or has closed the connection. */
async function drained({ response, unread, slowWatcherMs = SLOW_WATCHER_MS }: WatchStream): Promise<boolean> {
  // The events of clients that read are gone at the next turn. Those of a change that many watch must cut nobody off.
  await nextTurn();
  if (response.destroyed || !response.writableNeedDrain) {
    return !response.destroyed;
  }
  const limit = AbortSignal.timeout(slowWatcherMs);
  const closed = new AbortController();
  const waiting = unread.add(response.writableLength);
  const onClose = (): void => closed.abort();
  response.once('close', onClose);
  try {
    await once(response, 'drain', { signal: AbortSignal.any([limit, closed.signal, waiting.signal]) });
    return true;
  } catch {
    return false;
  } finally {
    response.off('close', onClose);
    unread.remove(waiting);
  }
}

function lineOf(
  { definition, form, lines, now }: WatchStream,
  event: WatchEvent,
  hasColumns: boolean,
): string | Buffer {
  const format = event.type === 'BOOKMARK' ? undefined : sharedFormat(form);
  if (format !== undefined) {
    return lines.lineOf(event, format);
  }
  return `${JSON.stringify({ type: event.type, object: eventObject(definition, form, event, now(), hasColumns) })}\n`;
}

/** The format that all watchers of a representation share; undefined for tables, whose cells have ages. */
function sharedFormat(form: ResponseForm): EventFormat | undefined {
  const { as, version } = form.representation;
  if (as === undefined) {
    return WHOLE_OBJECTS;
  }
  return as === 'Table'
    ? undefined
    : { name: `${as} ${version}`, encode: (object) => formattedObject(form, object, 0) };
}

function eventObject(
  definition: ResourceDefinition,
  form: ResponseForm,
  { type, object }: WatchEvent,
  now: number,
  hasColumns: boolean,
): object {
  if (type === 'BOOKMARK') {
    return bookmark(definition, form, object);
  }
  if (form.representation.as === 'Table') {
    const metadata = { resourceVersion: object.metadata.resourceVersion ?? '' };
    return tableOf(form, metadata, [object], now, hasColumns);
  }
  return formattedObject(form, object, now);
}

function bookmark(
  definition: ResourceDefinition,
  { representation }: ResponseForm,
  { metadata }: KubernetesObject,
): object {
  switch (representation.as) {
    case undefined:
      return { kind: definition.kind, apiVersion: apiVersionOf(definition), metadata };
    case 'Table':
      return {
        kind: 'Table',
        apiVersion: `meta.k8s.io/${representation.version}`,
        metadata: { resourceVersion: metadata.resourceVersion ?? '' },
        columnDefinitions: null,
        rows: [],
      };
    default:
      return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${representation.version}`, metadata };
  }
}
