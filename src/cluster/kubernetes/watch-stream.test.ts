import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../api-error.ts';
import { ClusterError } from '../errors.ts';
import { watchEvents } from './watch-stream.ts';

const event = (type: string, name: string): object => ({
  type,
  object: { apiVersion: 'v1', kind: 'Pod', metadata: { name } },
});

async function eventsOf(chunks: readonly (string | Buffer)[]): Promise<string[]> {
  const stream = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  const got: string[] = [];
  for await (const { type, object } of watchEvents(stream, 10_000, 'GET /pods')) {
    got.push(`${type} ${object.metadata.name}`);
  }
  return got;
}

describe('watchEvents', () => {
  it('returns the same events for any chunks', async () => {
    const names = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(names, fc.integer({ min: 1, max: 50 }), async (texts, size) => {
        const bytes = Buffer.from(texts.map((name) => `${JSON.stringify(event('ADDED', name))}\n`).join(''));
        const chunks = [];
        for (let start = 0; start < bytes.length; start += size) {
          chunks.push(bytes.subarray(start, start + size));
        }
        assert.deepEqual(
          await eventsOf(chunks),
          texts.map((name) => `ADDED ${name}`),
        );
      }),
      { numRuns: 50 },
    );
  });

  it('only throws errors of the Cluster port', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(fc.json(), fc.string())), async (lines) => {
        try {
          await eventsOf(lines.map((line) => `${line}\n`));
        } catch (error) {
          assert.ok(error instanceof ClusterError || error instanceof ApiError, String(error));
        }
      }),
      { numRuns: 50 },
    );
  });

  it('throws the error of an ERROR event', async () => {
    const status = { kind: 'Status', status: 'Failure', message: 'too old', reason: 'Expired', code: 410 };
    await assert.rejects(eventsOf([`${JSON.stringify({ type: 'ERROR', object: status })}\n`]), (error) => {
      assert.ok(error instanceof ApiError);
      assert.deepEqual([error.code, error.reason, error.message], [410, 'Expired', 'too old']);
      return true;
    });
  });

  it('reports a stream that ends within an event', async () => {
    await assert.rejects(eventsOf(['{"type":']), { name: 'ClusterError', code: 'unreachable' });
  });

  it('treats a silent connection as dead', async () => {
    const stream = new PassThrough();
    stream.write(`${JSON.stringify(event('ADDED', 'a'))}\n`);
    const events = watchEvents(stream, 30, 'GET /pods');
    assert.equal((await events.next()).done, false);
    await assert.rejects(events.next(), { name: 'ClusterError', code: 'timeout' });
    assert.ok(stream.destroyed);
  });

  it('closes the stream when its reader stops', async () => {
    const stream = new PassThrough();
    stream.write(`${JSON.stringify(event('ADDED', 'a'))}\n`);
    for await (const one of watchEvents(stream, 10_000, 'GET /pods')) {
      assert.equal(one.type, 'ADDED');
      break;
    }
    assert.ok(stream.destroyed);
  });
});
