// An audit says of objects what requests to create them get. With more objects: audit-agreement.full.test.ts.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { agreement, seenServerFields } from './audit-agreement.ts';
import { SERVER_FIELDS } from './audit-agreement-policies.ts';
import { VALUES } from './install-case.ts';
import { InstallLab } from './install-lab.ts';

const COUNT = 100;

describe('the verdicts of an audit', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  before(async () => {
    lab = await InstallLab.start();
    await lab.install(VALUES);
    await lab.running();
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  it(`are those of requests to create the same ${COUNT} mixed objects`, async (test) => {
    const { differences, ...sum } = await agreement(lab, COUNT);
    test.diagnostic(JSON.stringify(sum));
    assert.deepEqual(differences, []);
    assert.ok(sum.objects >= COUNT && sum.rejected > COUNT / 4 && sum.changed > 0, JSON.stringify(sum));
  });

  it('differ for policies that read what servers set, as the documentation says', async () => {
    assert.deepEqual(
      await seenServerFields(lab),
      SERVER_FIELDS.map(({ policy, inAudit, inRequest }) => `cap/${policy.metadata.name}: ${inAudit} ${inRequest}`),
    );
  });
});
