// The thread that answers host capabilities: when it ends, policies get answers again.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { guest, requiredLabel, requires, review, startServer, type TestServer, until } from './harness.ts';
import { Threads } from './threads.ts';

const asking = { module: guest('echo-host-call'), hostCapabilities: ['net/*'], timeoutEvalSeconds: 20 };
const question = { binding: 'kubewarden', ns: 'net', op: 'v1/dns_lookup_host', payload: 'localhost' };

async function isAnswered(server: TestServer): Promise<boolean> {
  const { allowed, status } = await server.review('asking', review({ object: question }));
  return allowed && status?.code !== 500;
}

describe('the thread of host capabilities', () => {
  it('starts with the first host call', async () => {
    using threads = new Threads();
    await using server = await startServer({ policies: { asking, good: requires('app') } });
    assert.equal(requiredLabel(await server.review('good', review())), 'app');
    assert.equal(threads.named('host capabilities').length, 0);
    assert.equal(await isAnswered(server), true);
    assert.equal(threads.named('host capabilities').length, 1);
  });

  it('is replaced when it ends, and every worker uses the new one', async () => {
    using threads = new Threads();
    await using server = await startServer({ policies: { asking, good: requires('app') } });
    assert.equal(await isAnswered(server), true);
    await threads.named('host capabilities')[0]?.terminate();
    const renewed = (): Promise<number> => server.metric('portcullis_worker_restarts_total', { reason: 'renewed' });
    await until(async () => (await renewed()) === 2);
    const answers = await Promise.all(Array.from({ length: 12 }, () => isAnswered(server)));
    assert.deepEqual(new Set(answers), new Set([true]));
    assert.equal(requiredLabel(await server.review('good', review())), 'app');
    assert.equal(threads.named('host capabilities').length, 1);
    assert.equal(await server.metric('portcullis_worker_restarts_total', { reason: 'crash' }), 0);
  });
});
