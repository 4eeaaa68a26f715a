// The controllers of governance on an embedded cluster: from Policies to the statuses that users see.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GOVERNANCE_LABELS } from '../../src/resources/index.ts';
import { CHECK, GovernanceLab, policyOfChecks } from './governance-lab.ts';

const check = (name: string) => ({ ...CHECK, name: `local-cluster/${name}` });
const COPY = 'local-cluster/policies';

/** Depends on a Policy that is Compliant. */
const dependsOn = (name: string) => ({
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'Policy',
  name,
  namespace: 'policies',
  compliance: 'Compliant',
});

describe('the controllers of governance', () => {
  it('copies a Policy, applies its templates when their dependencies are met, and reports on both', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(
      policyOfChecks('kafka', ['cluster'], { spec: { dependencies: [dependsOn('operator')] } }),
      policyOfChecks('operator', ['subscription', 'ready'], {
        extra: {
          ready: {
            extraDependencies: [
              { ...CHECK, name: 'subscription', namespace: 'local-cluster', compliance: 'Compliant' },
            ],
          },
        },
      }),
    );

    const copy = await lab.appears({ kind: 'Policy', name: `${COPY}.operator` });
    assert.equal(copy.metadata.labels?.[GOVERNANCE_LABELS.rootPolicy], 'policies.operator');
    await lab.appears(check('subscription'));
    const waiting = await lab.reaches(`${COPY}.kafka`, 'Pending');
    assert.deepEqual(
      waiting.status?.details?.map(({ state, pending }) => [
        state,
        pending?.map(({ name, required }) => `${required} ${name}`),
      ]),
      [['Waiting', ['Compliant policies.operator']]],
    );
    assert.equal(await lab.get(check('cluster')), undefined);
    assert.equal(await lab.get(check('ready')), undefined);

    await lab.setStatus(check('subscription'), { compliant: 'Compliant' });
    await lab.appears(check('ready'));
    assert.equal(await lab.get(check('cluster')), undefined);

    await lab.setStatus(check('ready'), { compliant: 'Compliant' });
    await lab.reaches('policies/operator', 'Compliant');
    await lab.appears(check('cluster'));
    await lab.setStatus(check('cluster'), { compliant: 'NonCompliant' });
    const root = await lab.reaches('policies/kafka', 'NonCompliant');
    assert.deepEqual(
      root.status?.status?.map(({ clustername, compliant }) => [clustername, compliant]),
      [['local-cluster', 'NonCompliant']],
    );
  });
});
