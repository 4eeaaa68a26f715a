// The mission's first example: an operator, and what it operates, in order. The test stands in for the operator.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { GovernanceLab } from './governance-lab.ts';

const EXAMPLE = readFileSync(new URL('../../examples/governance/kafka.yaml', import.meta.url), 'utf8');
const OPERATOR = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'kafka/strimzi-cluster-operator' };
const KAFKA = { apiVersion: 'kafka.strimzi.io/v1beta2', kind: 'Kafka', name: 'kafka/events' };

describe('an operator and what it operates, in order', () => {
  it('applies each Policy when the one before is Compliant, and says what it waits for', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(EXAMPLE);

    await lab.reaches('policies/kafka-prerequisites', 'Compliant');
    const operator = await lab.reaches('policies/kafka-operator', 'NonCompliant');
    assert.equal(
      operator.status?.message,
      'kafka-operator-runs: violation - deployments [strimzi-cluster-operator] found but not as specified in namespace kafka',
    );
    const pending = await lab.reaches('policies/kafka-cluster', 'Pending');
    const waits = 'Policy policies.kafka-operator, which is NonCompliant and must be Compliant';
    assert.equal(pending.status?.message, `kafka-cluster waits for ${waits}`);
    assert.deepEqual(pending.status?.pending, [{ template: 'kafka-cluster', reason: 'Mismatch', message: waits }]);
    const copy = await lab.policy('local-cluster/policies.kafka-cluster');
    assert.equal(
      copy?.status?.details?.[0]?.history?.[0]?.message,
      'Pending; Dependencies were not satisfied: 1 is still pending (Policy policies.kafka-operator)',
    );
    assert.equal(await lab.get(KAFKA), undefined);

    await lab.setStatus(OPERATOR, { availableReplicas: 1, readyReplicas: 1, replicas: 1 });
    await lab.reaches('policies/kafka-operator', 'Compliant');
    const kafka = await lab.appears(KAFKA);
    assert.deepEqual(kafka.spec, { kafka: { replicas: 3 } });
    const done = await lab.reaches('policies/kafka-cluster', 'Compliant');
    assert.equal(done.status?.pending, undefined);
  });

  it('suspends what is applied when the operator is gone, and deletes nothing', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(EXAMPLE);
    await lab.appears(OPERATOR);
    await lab.setStatus(OPERATOR, { availableReplicas: 1, readyReplicas: 1, replicas: 1 });
    await lab.reaches('policies/kafka-cluster', 'Compliant');

    await lab.setStatus(OPERATOR, { availableReplicas: 0 });
    await lab.reaches('policies/kafka-cluster', 'Pending');
    const copy = await lab.policy('local-cluster/policies.kafka-cluster');
    assert.equal(copy?.status?.details?.[0]?.state, 'Suspended');
    await lab.merge(KAFKA, { spec: { kafka: { replicas: 1 } } });
    const changed = await lab.get(KAFKA);
    assert.deepEqual(changed?.spec, { kafka: { replicas: 1 } });

    await lab.setStatus(OPERATOR, { availableReplicas: 1 });
    await lab.reaches('policies/kafka-cluster', 'Compliant');
    await lab.sees(KAFKA, (object) => JSON.stringify(object?.spec) === '{"kafka":{"replicas":3}}');
  });
});
