// Policies that never return: they time out, and others are served meanwhile.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { guest, requiredLabel, requires, review, startServer, type TestServer, until } from './harness.ts';

const TIMEOUT_MESSAGE = 'Policy execution interrupted because it exceeded the allowed execution time';
const loop = { module: guest('loop-in-validate'), timeoutEvalSeconds: 1 };

describe('a policy that never returns', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      policies: {
        good: requires('app'),
        loop,
        loop2: loop,
        loop3: loop,
        'either-of-them': {
          expression: 'loops() || labelled()',
          message: 'neither',
          policies: { loops: loop, labelled: requires('app') },
        },
        'bulk-loop': { module: guest('bulk-memory-loop'), timeoutEvalSeconds: 1 },
      },
    });
  });
  after(() => server[Symbol.asyncDispose]());

  /** Sends reviews for the good policy until the work is done; returns the number of answers. */
  async function goodAnswersDuring(work: Promise<unknown>): Promise<number> {
    let isDone = false;
    const done = work.finally(() => (isDone = true));
    let answers = 0;
    const client = async (): Promise<void> => {
      while (!isDone) {
        assert.equal(requiredLabel(await server.review('good', review())), 'app');
        answers += isDone ? 0 : 1;
      }
    };
    await Promise.all([done, client(), client(), client()]);
    return answers;
  }

  async function timesOut(id: string): Promise<void> {
    const { allowed, status } = await server.review(id, review());
    assert.deepEqual({ allowed, status }, { allowed: false, status: { message: TIMEOUT_MESSAGE, code: 500 } }, id);
  }

  it('times out, while others answer', async () => {
    assert.ok((await goodAnswersDuring(timesOut('loop'))) > 10);
    assert.equal(await server.metric('portcullis_policy_timeouts_total', { policy_name: 'loop' }), 1);
  });

  it('times out every time, in concurrent reviews', async () => {
    const work = Promise.all(['loop', 'loop', 'loop', 'loop2', 'loop2', 'loop3'].map(timesOut));
    assert.ok((await goodAnswersDuring(work)) > 10);
    assert.equal(await server.metric('portcullis_policy_timeouts_total', { policy_name: 'loop' }), 4);
    assert.equal(await server.metric('portcullis_policy_timeouts_total', { policy_name: 'loop3' }), 1);
  });

  it('times out with its API server', async () => {
    const body = JSON.stringify(review());
    const sent = Array.from({ length: 6 }, () => server.post('/validate/loop?timeout=1s', body));
    const answers = (await Promise.all(sent)).map(({ json }) => json as { response: { allowed: boolean } });
    assert.ok(answers.every(({ response }) => !response.allowed));
  });

  it('is the only member of its group that times out', async () => {
    const labelled = review({ object: { metadata: { name: 'x', labels: { app: 'shop' } } } });
    assert.equal((await server.review('either-of-them', labelled)).allowed, true);
    const { allowed, status } = await server.review('either-of-them', review());
    assert.equal(allowed, false);
    assert.equal(status?.message, 'neither');
    const causes = new Map(status?.details?.causes.map(({ field, message }) => [field, message]));
    assert.equal(causes.get('spec.policies.loops'), TIMEOUT_MESSAGE);
    assert.match(causes.get('spec.policies.labelled') ?? '', /has no label "app"/);
  });

  it('in bulk memory operations times out as well', async () => {
    assert.ok((await goodAnswersDuring(timesOut('bulk-loop'))) > 10);
  });

  it('leaves as many workers as before', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => server.review('good', review())));
    assert.ok(answers.every((answer) => requiredLabel(answer) === 'app'));
    assert.equal(await server.metric('portcullis_reviews_held'), 0);
    assert.equal(await server.metric('portcullis_reviews_waiting'), 0);
  });

  it('can be replaced by a better version, which is not slow', async () => {
    const before = (await server.status('loop')).serving?.version;
    await server.write({ good: requires('app'), loop: requires('now') });
    await until(async () => (await server.status('loop')).serving?.version !== before);
    const answers = await Promise.all(Array.from({ length: 20 }, () => server.review('loop', review())));
    assert.ok(answers.every((answer) => requiredLabel(answer) === 'now'));
  });
});

describe('a key of a previous request', () => {
  it('never replaces a key with an escape sequence in a later one', async () => {
    await using server = await startServer({
      policies: {
        'no-angle': {
          module: 'builtin:cel',
          settings: {
            validations: [{ expression: '!object.data.exists(key, key == "ab<")', message: 'ab< is not allowed' }],
          },
        },
      },
    });
    const bodyWith = (key: string): string =>
      JSON.stringify(review({ object: { metadata: { name: 'x' }, data: { first: '1', KEY: '2' } } })).replace(
        'KEY',
        key,
      );
    const allowed = async (key: string): Promise<unknown> =>
      ((await server.post('/validate/no-angle', bodyWith(key))).json as { response: { allowed: boolean } }).response
        .allowed;
    // Several per worker, because each has its own state.
    for (let round = 0; round < 10; round++) {
      assert.equal(await allowed(String.raw`ab\\`), true);
      assert.equal(await allowed(String.raw`ab\u003c`), false);
    }
  });
});
