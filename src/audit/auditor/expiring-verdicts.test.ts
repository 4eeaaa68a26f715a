import assert from 'node:assert/strict';
import { after, before, describe, it, mock } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { compareStrings } from '../../go/index.ts';
import { knownKind } from '../../resources/index.ts';
import { eventually } from '../testing/running-auditor.ts';
import { celSpec, samplePolicy } from '../testing/sample-policies.ts';
import { ExpiringVerdicts } from './expiring-verdicts.ts';
import { policyVersion, type PolicyVersion } from './policy-version.ts';

const CONFIG_MAPS = knownKind('v1', 'ConfigMap');

function versionOf(name: string, spec: object): PolicyVersion {
  const { id, definition, match = assert.fail() } = samplePolicy(name, spec);
  return policyVersion({ id, name }, { uid: name, generation: 1 }, { id, definition, match }, {}, undefined);
}

describe('verdicts that expire', () => {
  let cluster: EmbeddedCluster;
  before(async () => {
    cluster = await EmbeddedCluster.open();
  });
  after(() => cluster[Symbol.asyncDispose]());

  it('are given again some time after a change of what policies look up, and every hour', async () => {
    const kinds = (kind: string): object => ({ contextAwareResources: [{ apiVersion: 'v1', kind }] });
    const looking = versionOf('looking', celSpec('true', kinds('ConfigMap')));
    const other = versionOf('other', celSpec('true', kinds('Service')));
    const plain = versionOf('plain', celSpec('true'));
    const code = versionOf('code', { module: 'registry://example.com/m', rules: [], settings: {}, mutating: false });
    assert.deepEqual(
      [looking, other, plain, code].map(({ expires }) => expires),
      [true, true, false, true],
    );
    const again: string[] = [];
    let now = performance.now();
    const clock = mock.method(performance, 'now', () => now);
    try {
      using expiring = new ExpiringVerdicts({
        cluster: cluster.admin,
        judgeAgain: ({ name }) => again.push(name),
        log: pino({ level: 'silent' }),
      });
      expiring.follow([looking, other, plain, code]);
      // Until the kind is listed.
      await sleep(500);
      const metadata = { namespace: 'default', name: 'looked-up' };
      await cluster.admin.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
      await sleep(1_000);
      assert.deepEqual(again, [], 'what was looked up has to arrive everywhere');
      now += 3_000;
      await eventually(() => again, ['looking']);
      await cluster.admin.delete(CONFIG_MAPS, metadata);
      await sleep(300);
      now += 3_000;
      await sleep(1_000);
      assert.deepEqual(again, ['looking'], 'not more often than every 30 seconds');
      now += 30_000;
      await eventually(() => again, ['looking', 'looking']);
      now += 60 * 60_000;
      await eventually(() => again.toSorted(compareStrings), ['code', 'looking', 'looking', 'looking', 'other']);
    } finally {
      clock.mock.restore();
    }
  });
});
