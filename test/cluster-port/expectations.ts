// Assertions about rejections and watches.
import assert from 'node:assert/strict';
import { ApiError } from '../../src/cluster/index.ts';
import type { Cluster, WatchEvent, WatchOptions } from '../../src/cluster/index.ts';
import type { KubernetesObject, ResourceType } from '../../src/resources/index.ts';
import { eventually as eventuallyWithin } from '../cluster/eventually.ts';

/** Time limit for events that take milliseconds on an idle machine. */
const PATIENCE_MS = 20_000;

/** Asserts the rejection of a request: its HTTP status and reason, and its message if given. */
export async function refused(
  request: Promise<unknown>,
  code: number,
  reason: string,
  message?: string | RegExp,
): Promise<ApiError> {
  const error = await request.then(
    () => assert.fail('expected a refusal, but the request succeeded'),
    (failure: unknown) => failure,
  );
  assert.ok(error instanceof ApiError, `expected an ApiError, got ${String(error)}`);
  assert.deepEqual([error.code, error.reason], [code, reason], error.message);
  if (typeof message === 'string') {
    assert.equal(error.message, message);
  } else if (message !== undefined) {
    assert.match(error.message, message);
  }
  return error;
}

/** Retries until it does not throw, within the time limit. */
export function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  return eventuallyWithin(attempt, { timeoutMs: PATIENCE_MS });
}

/** Watches until `enough` is true, and returns the events. */
export async function watched<T extends KubernetesObject>(
  cluster: Cluster,
  type: ResourceType<T>,
  options: WatchOptions,
  enough: (events: readonly WatchEvent<T>[]) => boolean,
): Promise<readonly WatchEvent<T>[]> {
  const events: WatchEvent<T>[] = [];
  const end = new AbortController();
  const timer = setTimeout(
    () => end.abort(new Error(`only ${events.length} events came: ${JSON.stringify(events)}`)),
    PATIENCE_MS,
  );
  try {
    for await (const event of cluster.watch(type, { ...options, signal: end.signal })) {
      events.push(event);
      if (enough(events)) {
        break;
      }
    }
  } finally {
    clearTimeout(timer);
  }
  end.signal.throwIfAborted();
  return events;
}

/** Events without their objects: `ADDED a`, `DELETED b`, …. */
export function summary(events: readonly WatchEvent[]): string[] {
  return events.map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`.trim());
}
