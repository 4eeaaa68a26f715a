// Workers that are stuck, overloaded or gone: no review is lost, and no other policy is affected.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { guest, requiredLabel, requires, review, startServer, type TestServer, until } from './harness.ts';
import { Threads } from './threads.ts';

const TIMEOUT_MESSAGE = 'Policy execution interrupted because it exceeded the allowed execution time';
/** Longer than any of these tests takes, so that no deadline ends a worker. */
const LONG_SECONDS = 25;
/** Quick like any policy, until the object contains a "~". */
const moody = { module: guest('loop-when-asked'), timeoutEvalSeconds: LONG_SECONDS };
const endless = { module: guest('loop-in-validate'), timeoutEvalSeconds: LONG_SECONDS };

/** An object for which the guest `loop-when-asked` never returns. */
const stuckReview = (): unknown => review({ object: { metadata: { name: 'stuck~' } } });

/** Whether a promise has settled. */
function isOver(work: Promise<unknown>): () => boolean {
  let over = false;
  const end = (): void => void (over = true);
  work.then(end, end);
  return () => over;
}

/** Sends reviews of quick policies, several at a time so that each worker has some queued. */
async function ask(server: TestServer, id: string, count: number): Promise<void> {
  const answers = await Promise.all(Array.from({ length: count }, () => server.review(id, review())));
  assert.equal(answers.filter(({ status }) => status?.code === 500).length, 0);
}

describe('a worker that is stuck', () => {
  it('returns its queued reviews, and another one evaluates them', async () => {
    await using server = await startServer({ policies: { moody, good: requires('app') } });
    // Now the policies are known as quick, so reviews are queued at workers.
    await ask(server, 'moody', 60);
    await ask(server, 'good', 60);
    const quick = Array.from({ length: 8 }, () => server.review('moody', review()));
    const stuck = server.post('/validate/moody?timeout=30s', JSON.stringify(stuckReview()));
    const isAnswered = isOver(stuck);
    const behind = Array.from({ length: 60 }, (_, index) =>
      server.review(index % 2 === 0 ? 'moody' : 'good', review()),
    );
    const answers = await Promise.all([...quick, ...behind]);
    assert.ok(!isAnswered(), 'the stuck one is still stuck');
    assert.ok(answers.every(({ status }) => status?.code !== 500));
    assert.equal(answers.filter((answer) => requiredLabel(answer) === 'app').length, 30);
    assert.equal(await server.metric('portcullis_reviews_held'), 1);
    await server.stop();
  });

  it('does not block the reviews of a second one', async () => {
    await using server = await startServer({ policies: { moody, endless, good: requires('app') } });
    await ask(server, 'good', 20);
    const stuck = [
      server.post('/validate/moody?timeout=30s', JSON.stringify(stuckReview())),
      server.post('/validate/endless?timeout=30s', JSON.stringify(review())),
    ];
    await until(async () => (await server.metric('portcullis_reviews_held')) === 2);
    // Both workers are stuck; one is replaced for the others.
    await ask(server, 'good', 20);
    assert.ok(stuck.map(isOver).every((is) => !is()));
    assert.ok((await server.metric('portcullis_worker_restarts_total', { reason: 'held' })) >= 1);
    await server.stop();
  });
});

describe('a review that waits beyond its timeout', () => {
  it('times out, and is not lost', async () => {
    await using server = await startServer({
      workers: 1,
      policies: { endless: { ...endless, timeoutEvalSeconds: 6 }, good: requires('app') },
    });
    const holding = server.review('endless', review());
    await until(async () => (await server.metric('portcullis_reviews_held')) === 1);
    const body = JSON.stringify(review());
    const impatient = Array.from({ length: 5 }, () => server.post('/validate/good?timeout=500ms', body));
    const patient = Array.from({ length: 5 }, () => server.post('/validate/good?timeout=20s', body));
    for (const { status, json } of await Promise.all(impatient)) {
      const { response } = json as { response: { allowed: boolean; status: unknown } };
      assert.deepEqual(
        [status, response.allowed, response.status],
        [200, false, { message: TIMEOUT_MESSAGE, code: 500 }],
      );
    }
    for (const { json } of await Promise.all(patient)) {
      assert.equal(requiredLabel((json as { response: Parameters<typeof requiredLabel>[0] }).response), 'app');
    }
    assert.equal((await holding).status?.message, TIMEOUT_MESSAGE);
    assert.equal(await server.metric('portcullis_reviews_held'), 0);
    assert.equal(await server.metric('portcullis_reviews_waiting'), 0);
  });
});

describe('a worker that ends', () => {
  const crashes = (server: TestServer): Promise<number> =>
    server.metric('portcullis_worker_restarts_total', { reason: 'crash' });

  it('twice for one review fails only that review', async () => {
    using threads = new Threads();
    await using server = await startServer({ policies: { endless, good: requires('app') } });
    const doomed = server.review('endless', review());
    const isAnswered = isOver(doomed);
    let isDone = false;
    let others = 0;
    const client = async (): Promise<void> => {
      while (!isDone) {
        assert.equal(requiredLabel(await server.review('good', review())), 'app');
        others += 1;
      }
    };
    const clients = [client(), client()];
    try {
      await (await threads.stuck()).terminate();
      await until(async () => (await crashes(server)) === 1);
      // It is retried once.
      const again = await threads.stuck();
      assert.ok(!isAnswered());
      await again.terminate();
      const { allowed, status } = await doomed;
      assert.deepEqual([allowed, status], [false, { message: TIMEOUT_MESSAGE, code: 500 }]);
    } finally {
      isDone = true;
    }
    await Promise.all(clients);
    assert.ok(others > 5);
    assert.equal(await crashes(server), 2);
    assert.equal(await server.metric('portcullis_policy_timeouts_total', { policy_name: 'endless' }), 1);
    assert.equal(await server.metric('portcullis_reviews_held'), 0);
    await until(() => threads.evaluating().length === 2);
  });

  it('under load loses no review, and its replacement serves the newest versions', async () => {
    using threads = new Threads();
    await using server = await startServer({ policies: { good: requires('v1') } });
    let isDone = false;
    const client = async (): Promise<void> => {
      while (!isDone) {
        const answer = await server.review('good', review());
        assert.match(requiredLabel(answer) ?? JSON.stringify(answer), /^v[12]$/);
      }
    };
    const clients = Array.from({ length: 6 }, client);
    try {
      for (let ended = 1; ended <= 4; ended += 1) {
        await threads.evaluating()[ended % 2]?.terminate();
        await until(async () => (await crashes(server)) === ended && threads.evaluating().length === 2);
        // A review that is hit twice fails: wait for those that were hit now.
        await ask(server, 'good', 20);
      }
      await server.write({ good: requires('v2') });
      await until(async () => requiredLabel(await server.review('good', review())) === 'v2');
    } finally {
      isDone = true;
    }
    await Promise.all(clients);
    const answers = await Promise.all(Array.from({ length: 20 }, () => server.review('good', review())));
    assert.ok(answers.every((answer) => requiredLabel(answer) === 'v2'));
  });
});
