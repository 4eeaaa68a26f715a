import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  MAX_CLUSTER_TRANSFERS,
  MAX_NAMESPACE_TRANSFERS,
  MAX_PENDING_TRANSFERS,
  MAX_TENANT_TRANSFERS,
  MAX_TRANSFERS_PER_HOST,
  TransferSlots,
} from './transfer-slots.ts';

/** Transfers that run until the test ends them. */
function setUp() {
  const slots = new TransferSlots();
  const running: string[] = [];
  const gates: (() => void)[] = [];
  const begin = (host: string, party: string | undefined, count: number): Promise<void>[] =>
    Array.from({ length: count }, () =>
      slots.run(host, party, async () => {
        running.push(host);
        await new Promise<void>((resolve) => gates.push(resolve));
      }),
    );
  const endAll = async (all: readonly Promise<unknown>[]): Promise<void> => {
    const settled = Promise.allSettled(all);
    let isDone = false;
    void settled.then(() => (isDone = true));
    while (!isDone) {
      gates.splice(0).forEach((open) => open());
      await new Promise(setImmediate);
    }
  };
  return { slots, running, begin, endAll };
}

const turn = (): Promise<void> => new Promise(setImmediate);

describe('TransferSlots', () => {
  it('leaves room for other registries while one hangs', async () => {
    const { running, begin, endAll } = setUp();
    const all = begin('slow', undefined, MAX_CLUSTER_TRANSFERS * 2);
    await turn();
    assert.equal(running.length, MAX_TRANSFERS_PER_HOST);
    all.push(...begin('other', undefined, 1));
    await turn();
    assert.ok(running.includes('other'));
    await endAll(all);
    assert.equal(running.length, MAX_CLUSTER_TRANSFERS * 2 + 1);
  });

  it('leaves room for other namespaces, and for policies of the cluster', async () => {
    const { running, begin, endAll } = setUp();
    const all = Array.from({ length: 20 }, (_, i) => begin(`slow-${i}`, 'a', 1)).flat();
    await turn();
    assert.equal(running.length, MAX_NAMESPACE_TRANSFERS);
    all.push(...begin('slow-0', 'b', 1), ...begin('slow-0', undefined, 1));
    await turn();
    assert.equal(running.length, MAX_NAMESPACE_TRANSFERS + 2);
    await endAll(all);
  });

  it('limits those of all namespaces', async () => {
    const { running, begin, endAll } = setUp();
    const all = Array.from({ length: 40 }, (_, i) => begin(`host-${i}`, `namespace-${i}`, 1)).flat();
    await turn();
    assert.equal(running.length, MAX_TENANT_TRANSFERS);
    all.push(...begin('cluster', undefined, 1));
    await turn();
    assert.equal(running.length, MAX_TENANT_TRANSFERS + 1);
    await endAll(all);
  });

  it('refuses more than may wait, for this party only', async () => {
    const { slots, begin, endAll } = setUp();
    const all = begin('slow', 'a', MAX_PENDING_TRANSFERS);
    await assert.rejects(
      slots.run('other', 'a', async () => 'x'),
      /too many images are being read: expected at most 64/,
    );
    assert.equal(await slots.run('other', 'b', async () => 'x'), 'x');
    await endAll(all);
    assert.equal(await slots.run('other', 'a', async () => 'x'), 'x');
  });

  it('gives the slot of a failed transfer to the next', async () => {
    const { slots } = setUp();
    const failing = Array.from({ length: 20 }, () =>
      slots.run('host', undefined, async () => {
        await turn();
        throw new Error('failed');
      }),
    );
    assert.ok((await Promise.allSettled(failing)).every(({ status }) => status === 'rejected'));
    assert.equal(await slots.run('host', undefined, async () => 'x'), 'x');
  });
});
