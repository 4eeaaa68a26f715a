// Policies that never end: they are cut off, and the others go on answering meanwhile.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { guest, requiredLabel, requires, review, startServer, type TestServer, until } from './harness.ts';

const TIMEOUT_MESSAGE = 'Policy execution interrupted because it exceeded the allowed execution time';
const loop = { module: guest('loop-in-validate'), timeoutEvalSeconds: 1 };

describe('a policy that never ends', () => {
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

  /** Asks the good policy again and again until the work is done; how many answers came meanwhile. */
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

  async function isCutOff(id: string): Promise<void> {
    const { allowed, status } = await server.review(id, review());
    assert.deepEqual({ allowed, status }, { allowed: false, status: { message: TIMEOUT_MESSAGE, code: 500 } }, id);
  }

  it('is cut off, while others answer', async () => {
    assert.ok((await goodAnswersDuring(isCutOff('loop'))) > 10);
    assert.equal(await server.metric('portcullis_policy_timeouts_total', { policy_name: 'loop' }), 1);
  });

  it('is cut off every time, however often it is asked at once', async () => {
    const work = Promise.all(['loop', 'loop', 'loop', 'loop2', 'loop2', 'loop3'].map(isCutOff));
    assert.ok((await goodAnswersDuring(work)) > 10);
    assert.equal(await server.metric('portcullis_policy_timeouts_total', { policy_name: 'loop' }), 4);
    assert.equal(await server.metric('portcullis_policy_timeouts_total', { policy_name: 'loop3' }), 1);
  });

  it('is told that nobody waits for it any more, when the API server does not', async () => {
    const body = JSON.stringify(review());
    const asked = Array.from({ length: 6 }, () => server.post('/validate/loop?timeout=1s', body));
    const answers = (await Promise.all(asked)).map(({ json }) => json as { response: { allowed: boolean } });
    assert.ok(answers.every(({ response }) => !response.allowed));
  });

  it('is the only member of its group that is cut off', async () => {
    const labelled = review({ object: { metadata: { name: 'x', labels: { app: 'shop' } } } });
    assert.equal((await server.review('either-of-them', labelled)).allowed, true);
    const { allowed, status } = await server.review('either-of-them', review());
    assert.equal(allowed, false);
    assert.equal(status?.message, 'neither');
    const causes = new Map(status?.details?.causes.map(({ field, message }) => [field, message]));
    assert.equal(causes.get('spec.policies.loops'), TIMEOUT_MESSAGE);
    assert.match(causes.get('spec.policies.labelled') ?? '', /has no label "app"/);
  });

  it('in bulk memory operations is cut off as well', async () => {
    assert.ok((await goodAnswersDuring(isCutOff('bulk-loop'))) > 10);
  });

  it('leaves as many workers as before', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => server.review('good', review())));
    assert.ok(answers.every((answer) => requiredLabel(answer) === 'app'));
    assert.equal(await server.metric('portcullis_reviews_held'), 0);
    assert.equal(await server.metric('portcullis_reviews_waiting'), 0);
  });

  it('can be replaced by a better version, which is not held back', async () => {
    const before = (await server.status('loop')).serving?.version;
    await server.write({ good: requires('app'), loop: requires('now') });
    await until(async () => (await server.status('loop')).serving?.version !== before);
    const answers = await Promise.all(Array.from({ length: 20 }, () => server.review('loop', review())));
    assert.ok(answers.every((answer) => requiredLabel(answer) === 'now'));
  });
});

describe('a key of an earlier request', () => {
  it('never replaces a key that a later one writes with an escape sequence', async () => {
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
    // More than once for each worker, because each has objects of its own.
    for (let round = 0; round < 10; round++) {
      assert.equal(await allowed(String.raw`ab\\`), true);
      assert.equal(await allowed(String.raw`ab\u003c`), false);
    }
  });
});
