// As audit-agreement.test.ts, with 2,000 objects and those that controllers make of them.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { agreement } from './audit-agreement.ts';
import { VALUES } from './install-case.ts';
import { InstallLab } from './install-lab.ts';

const COUNT = 2_000;

it(
  `an audit says of ${COUNT} mixed objects what requests to create them get`,
  { skip: skipWithoutCluster() },
  async (test) => {
    await using lab = await InstallLab.start();
    await lab.install(VALUES);
    await lab.running();
    const { differences, ...sum } = await agreement(lab, COUNT);
    test.diagnostic(JSON.stringify(sum));
    assert.deepEqual(differences, []);
    assert.ok(sum.objects >= COUNT, JSON.stringify(sum));
  },
);
