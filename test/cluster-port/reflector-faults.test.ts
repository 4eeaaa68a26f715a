// Each fault of the soak (bench/soak.ts) once: after any fault, a reflector's cache equals the API server's state.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { startCluster } from '../cluster/cluster.ts';
import { runFaults } from './fault-run.ts';

/** The promised time. Test machines may be slower, so the test only checks that it recovers. */
const PROMISED_MS = 2_000;

describe('a reflector behind a bad network, on a real API server', { skip: skipWithoutCluster() }, () => {
  it('equals the server’s state after each heal, and lists again only when its version has expired', async (context) => {
    await using server = await startCluster();
    const seed = Math.floor(Math.random() * 2 ** 31);
    context.diagnostic(`seed ${seed}`);
    const result = await runFaults(server, { objects: 700, changesPerSecond: 100, seed });
    for (const { fault, faultMs, recoveryMs } of result.rounds) {
      const late = recoveryMs > PROMISED_MS ? `, expected at most ${PROMISED_MS}` : '';
      context.diagnostic(`${fault} for ${faultMs.toFixed(0)} ms: equal after ${recoveryMs.toFixed(0)} ms${late}`);
    }
    assert.equal(new Set(result.rounds.map(({ fault }) => fault)).size, 8, 'every fault');
    assert.deepEqual(
      result.rounds.filter(({ recoveryMs }) => recoveryMs === Infinity),
      [],
      'a cache never became equal',
    );
    assert.equal(result.report.relists, result.expiries, 'a full list for each version that was too old, and no other');
    // A list that a fault interrupts is started again.
    assert.ok(
      result.lists <= 1 + result.expiries + result.brokenLists,
      `and the server saw no others, but ${result.lists}`,
    );
    assert.equal(result.report.handlerErrors, 0);
  });
});
