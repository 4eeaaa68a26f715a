import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WatchEvent } from '../../cluster/index.ts';
import { servedKind } from '../testing/served-kind.ts';
import { EventLines } from './event-lines.ts';
import { EventTurns } from './event-turns.ts';
import { PLAIN_JSON } from './negotiation.ts';
import { printerOf } from './table.ts';
import { UnreadEvents } from './unread-events.ts';
import { sendWatch } from './watch-stream.ts';

const WATCHES = 20;
const LINE_BYTES = 10_000;

describe('streams of watches', () => {
  it('get a change of a large object in several turns of the event loop', async () => {
    const definition = servedKind('v1', 'ConfigMap');
    assert.ok(definition !== undefined);
    const abort = new AbortController();
    const { promise: changed, resolve: change } = Promise.withResolvers<WatchEvent>();
    const shared = { lines: new EventLines(), turns: new EventTurns(4 * LINE_BYTES), unread: new UnreadEvents() };
    const form = {
      representation: PLAIN_JSON,
      printer: printerOf(definition, undefined),
      includeObject: 'None' as const,
    };
    const responses = Array.from({ length: WATCHES }, () => new ServerResponse(new IncomingMessage(new Socket())));
    const ended = responses.map(async (response) => {
      const stream = { response, user: 'mallory', definition, form, ...shared, now: Date.now, signal: abort.signal };
      return await sendWatch(stream, oneEvent(changed));
    });
    await nextTurn();
    const headers = responses[0]?.writableLength ?? 0;
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data: 'x'.repeat(LINE_BYTES) };
    change({ type: 'ADDED', object: Object.freeze(object) });
    const perTurn: number[] = [];
    for (let written = 0; written < WATCHES;) {
      await nextTurn();
      const now = responses.filter(({ writableLength }) => writableLength > headers + LINE_BYTES).length;
      perTurn.push(now - written);
      written = now;
    }
    assert.ok(Math.max(...perTurn) <= 4, `events in each turn: ${perTurn.join(', ')}`);
    assert.deepEqual(new Set(await Promise.all(ended)), new Set(['ended']));
  });
});

async function* oneEvent(changed: Promise<WatchEvent>): AsyncGenerator<WatchEvent> {
  yield await changed;
}
