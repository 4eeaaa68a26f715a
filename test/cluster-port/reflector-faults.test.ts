// Each fault of the soak (bench/soak.ts) once: whatever happens to the connection, a reflector's cache becomes what the API server has.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { startCluster } from '../cluster/cluster.ts';
import { runFaults } from './fault-run.ts';

/** What is promised; machines of pipelines may be busier than that, so the test only asks that it ends at all. */
const PROMISED_MS = 2_000;

describe('a reflector behind a bad network, on a real API server', { skip: skipWithoutCluster() }, () => {
  it('has the state of the server after each heal, and lists again only when its version was too old', async (context) => {
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
    // A list that is hit by a fault itself is begun again.
    assert.ok(
      result.lists <= 1 + result.expiries + result.brokenLists,
      `and the server saw no others, but ${result.lists}`,
    );
    assert.equal(result.report.handlerErrors, 0);
  });
});
