import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import { LabelLimit } from './label-limit.ts';
import { MetricsEndpoint } from './metrics-endpoint.ts';
import { MAX_SERIES_OF_METRIC, metricsPage, pageText, type SampledMetric } from './metrics-page.ts';

/** A metric with many samples. */
function large(count: number, name = 'large'): Metric {
  const metric: SampledMetric = {
    name,
    help: 'many',
    type: 'gauge',
    *samples() {
      for (let index = 0; index < count; index += 1) {
        yield { labels: { index: String(index) }, value: index };
      }
    },
  };
  return metric as unknown as Metric;
}

describe('a page of metrics', () => {
  it('is what prom-client writes, apart from empty lines, and the count of what is left out', async () => {
    const registry = new Registry();
    const registers = [registry];
    const counter = new Counter({ name: 'c_total', help: 'a\nb \\', labelNames: ['name'], registers });
    for (const name of ['plain', 'quote " backslash \\ line\nend', 'ü\u202e']) {
      counter.inc({ name }, 0.5);
    }
    for (const [name, value] of [
      ['nan', Number.NaN],
      ['up', Infinity],
      ['down', -Infinity],
      ['small', 1e-9],
    ] as const) {
      new Gauge({ name, help: name, registers }).set(value);
    }
    registry.registerMetric(new Gauge({ name: 'empty', help: 'none', labelNames: ['a'], registers: [] }));
    new Histogram({ name: 'h', help: 'h', labelNames: ['a'], buckets: [1, 2], registers }).observe({ a: 'b' }, 1.5);
    const lines = (text: string): string[] =>
      text.split('\n').filter((line) => line !== '' && !line.includes('omitted'));
    const expected = (await registry.metrics()).replaceAll(' Nan\n', ' NaN\n');
    assert.deepEqual(lines(await pageText([{ registry }])), lines(expected));
  });

  it('leaves time to other work of the thread', async () => {
    const registry = new Registry();
    registry.registerMetric(large(20_000));
    let turns = 0;
    let counting = setImmediate(function count() {
      turns += 1;
      counting = setImmediate(count);
    });
    await pageText([{ registry }]);
    clearImmediate(counting);
    assert.ok(turns >= 40, `${turns} turns of the event loop`);
  });

  it('has a limit for each metric, and says what it leaves out', async () => {
    const registry = new Registry();
    registry.registerMetric(large(MAX_SERIES_OF_METRIC + 7));
    const text = await pageText([{ registry }]);
    assert.equal(text.split('\n').filter((line) => line.startsWith('large{')).length, MAX_SERIES_OF_METRIC);
    assert.match(text, /^portcullis_metrics_samples_omitted\{metric="large"\} 7$/m);
  });

  it('goes on while series are removed', async () => {
    const registry = new Registry();
    const labels = new Map(Array.from({ length: 2_000 }, (_, index) => [String(index), index]));
    const metric: SampledMetric = {
      name: 'm',
      help: 'm',
      type: 'gauge',
      *samples() {
        for (const [index, value] of labels) {
          yield { labels: { index }, value };
        }
      },
    };
    registry.registerMetric(metric as unknown as Metric);
    const page = metricsPage([{ registry }]);
    await page.next();
    labels.clear();
    let rest = '';
    for await (const slice of page) {
      rest += slice;
    }
    assert.doesNotMatch(rest, /^m\{/m);
  });
});

describe('the endpoint of metrics', () => {
  it('writes no faster than its clients read, and no more pages at once than a few', async () => {
    const registry = new Registry();
    // 400 bytes a sample: more than the buffers of a connection.
    const names = Array.from({ length: 3 }, (_, index) => `${'n'.repeat(400)}${index}`);
    for (const name of names) {
      registry.registerMetric(large(40_000, name));
    }
    let most = 0;
    const endpoint = new MetricsEndpoint([{ registry }]);
    const server = createServer((incoming, response) => {
      void endpoint.answer(incoming, response);
      response.on('drain', () => (most = Math.max(most, response.writableLength)));
      const watch = setInterval(() => (most = Math.max(most, response.writableLength)), 5);
      response.once('close', () => clearInterval(watch));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const get = async (): Promise<{ status: number; stop: () => void }> => {
      const sent = request({ port, host: '127.0.0.1', path: '/metrics', agent: false });
      sent.on('error', () => undefined).end();
      const [response] = (await once(sent, 'response')) as [{ statusCode: number }];
      return { status: response.statusCode, stop: () => sent.destroy() };
    };
    const slow = await Promise.all([get(), get(), get(), get()]);
    assert.deepEqual(
      slow.map(({ status }) => status),
      [200, 200, 200, 200],
    );
    const fifth = await get();
    assert.equal(fifth.status, 503);
    assert.ok(most < 2 ** 20, `${most} bytes waited for a client that does not read`);
    slow.forEach(({ stop }) => stop());
    while ((await get()).status !== 200) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    server.closeAllConnections();
    server.close();
  });
});

describe('values of a label', () => {
  it('keep the most frequent ones', () => {
    const limit = new LabelLimit(2);
    for (const value of ['rare', 'often', 'often', 'also', 'also', 'forged']) {
      limit.count(value);
    }
    assert.deepEqual(
      ['rare', 'often', 'also', 'forged'].map((value) => limit.label(value)),
      ['other', 'often', 'also', 'other'],
    );
  });
});
