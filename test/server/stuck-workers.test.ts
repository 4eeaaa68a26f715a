// Workers that are stuck, overloaded or gone: no review is lost, and no other policy is affected.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { guest, requiredLabel, requires, review, startServer, type TestServer, until } from './harness.ts';
import { Threads } from './threads.ts';

const TIMEOUT_MESSAGE = 'Policy execution interrupted because it exceeded the allowed execution time';
/** As long as a policy may have, so that its deadline ends a worker on a very busy machine only. See {@link outlasted}. */
const LONG_SECONDS = 30;
/** Quick like any policy, until the object contains a "~". */
const moody = { module: guest('loop-when-asked'), timeoutEvalSeconds: LONG_SECONDS };
/** Not cut off because the machine is busy. */
const good = requires('app', { timeoutEvalSeconds: LONG_SECONDS });
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

/**
 * Repeats a scenario until its stuck review outlasts it. On a very busy machine the deadline of the review may come first, which says
 * nothing; a review that waits for the stuck one is never answered before it.
 */
async function outlasted(scenario: () => Promise<boolean>): Promise<void> {
  while (!(await scenario())) {
    // Once more.
  }
}

/** Sends reviews of quick policies, several at a time so that each worker has some queued. */
async function ask(server: TestServer, id: string, count: number): Promise<void> {
  const answers = await Promise.all(Array.from({ length: count }, () => server.review(`${id}?timeout=30s`, review())));
  assert.equal(answers.filter(({ status }) => status?.code === 500).length, 0);
}

describe('a worker that is stuck', () => {
  const queuedReviewsAreReturned = async (): Promise<boolean> => {
    await using server = await startServer({ policies: { moody, good } });
    // Now the policies are known as quick, so reviews are queued at workers.
    await ask(server, 'moody', 60);
    await ask(server, 'good', 60);
    const quick = Array.from({ length: 8 }, () => server.review('moody', review()));
    const stuck = server.post('/validate/moody?timeout=30s', JSON.stringify(stuckReview()));
    const isAnswered = isOver(stuck);
    const behind = Array.from({ length: 60 }, (_, index) =>
      server.review(`${index % 2 === 0 ? 'moody' : 'good'}?timeout=30s`, review()),
    );
    const answers = await Promise.all([...quick, ...behind]);
    const held = await server.metric('portcullis_reviews_held');
    const isStuck = !isAnswered();
    assert.ok(answers.every(({ status }) => status?.code !== 500));
    assert.equal(answers.filter((answer) => requiredLabel(answer) === 'app').length, 30);
    assert.ok(held === 1 || !isStuck);
    await server.stop();
    return isStuck;
  };

  it('returns its queued reviews, and another one evaluates them', () => outlasted(queuedReviewsAreReturned));

  const secondIsReplaced = async (): Promise<boolean> => {
    await using server = await startServer({ policies: { moody, endless, good } });
    await ask(server, 'good', 20);
    const stuck = [
      server.post('/validate/moody?timeout=30s', JSON.stringify(stuckReview())),
      server.post('/validate/endless?timeout=30s', JSON.stringify(review())),
    ];
    const areOver = stuck.map(isOver);
    await until(async () => (await server.metric('portcullis_reviews_held')) === 2 || areOver.some((is) => is()));
    // Both workers are stuck; one is replaced for the others.
    await ask(server, 'good', 20);
    const held = await server.metric('portcullis_worker_restarts_total', { reason: 'held' });
    const areStuck = areOver.every((is) => !is());
    assert.ok(held >= 1 || !areStuck);
    await server.stop();
    return areStuck;
  };

  it('does not block the reviews of a second one', () => outlasted(secondIsReplaced));
});

describe('a review that waits beyond its timeout', () => {
  it('times out, and is not lost', async () => {
    await using server = await startServer({
      workers: 1,
      policies: { endless: { ...endless, timeoutEvalSeconds: 6 }, good },
    });
    const holding = server.review('endless', review());
    await until(async () => (await server.metric('portcullis_reviews_held')) === 1);
    const body = JSON.stringify(review());
    const impatient = Array.from({ length: 5 }, () => server.post('/validate/good?timeout=500ms', body));
    const patient = Array.from({ length: 5 }, () => server.post('/validate/good?timeout=30s', body));
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

  /** Two workers, and a spare where a busy machine made a policy seem to hold one. */
  const areReplaced = (threads: Threads): boolean => threads.evaluating().length >= 2;

  it('twice for one review fails only that review', async () => {
    using threads = new Threads();
    await using server = await startServer({ policies: { endless, good } });
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
    assert.ok(others > 0);
    assert.equal(await crashes(server), 2);
    assert.equal(await server.metric('portcullis_policy_timeouts_total', { policy_name: 'endless' }), 1);
    assert.equal(await server.metric('portcullis_reviews_held'), 0);
    await until(() => areReplaced(threads));
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
        await until(async () => (await crashes(server)) === ended && areReplaced(threads));
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
