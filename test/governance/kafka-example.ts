// The mission's first example: an operator, and what it operates, in order. The example has a CRD without fields in place of
// Strimzi's, and this scenario writes the status that the operator's Deployment would have.
import assert from 'node:assert/strict';
import { type ExampleCluster, governanceExample, showsPolicies, showsTable } from './example-cluster.ts';
import type { LabObjects } from './lab-objects.ts';

const OPERATOR = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'kafka/strimzi-cluster-operator' };
const KAFKA = { apiVersion: 'kafka.strimzi.io/v1beta2', kind: 'Kafka', name: 'kafka/events' };
const WAITS = 'Policy policies.kafka-operator, which is NonCompliant';
const PREREQUISITES = ['kafka-prerequisites', 'enforce', 'Compliant', ''] as const;
/** What users see while the operator does not run. */
const HALF_WAY = [
  ['kafka-cluster', 'enforce', 'Pending', `kafka-cluster waits for ${WAITS}`],
  [
    'kafka-operator',
    '',
    'NonCompliant',
    'kafka-operator-runs: violation - deployments [strimzi-cluster-operator] found but not as specified in namespace kafka',
  ],
  PREREQUISITES,
] as const;
/** What users see while it runs. */
const DONE = [
  ['kafka-cluster', 'enforce', 'Compliant', ''],
  ['kafka-operator', '', 'Compliant', ''],
  PREREQUISITES,
] as const;

/** Applies each Policy when the one before is Compliant, and says what it waits for. */
export async function kafkaInOrder({ objects, kubectl }: ExampleCluster): Promise<void> {
  await kubectl(['apply', '--server-side', '-f', '-'], governanceExample('kafka'));
  await showsPolicies(kubectl, ...HALF_WAY);
  const { status } = await objects.reaches('policies/kafka-cluster', 'Pending');
  assert.deepEqual(status?.pending, [{ template: 'kafka-cluster', reason: 'Mismatch', message: WAITS }]);
  const copy = await objects.policy('local-cluster/policies.kafka-cluster');
  assert.equal(
    copy?.status?.details?.[0]?.history?.[0]?.message,
    'Pending; Dependencies were not satisfied: 1 is still pending (Policy policies.kafka-operator)',
  );
  assert.equal(await objects.get(KAFKA), undefined);

  await operatorRuns(objects, 1);
  const kafka = await objects.appears(KAFKA);
  assert.deepEqual(kafka.spec, { kafka: { replicas: 3 } });
  await showsPolicies(kubectl, ...DONE);
  await showsTable(
    kubectl,
    ['kafka', '-A'],
    [
      ['NAMESPACE', 'NAME'],
      ['kafka', 'events'],
    ],
  );
}

/** Suspends what is applied while the operator is gone, and deletes nothing. Continues {@link kafkaInOrder}. */
export async function kafkaWithoutOperator({ objects, kubectl }: ExampleCluster): Promise<void> {
  await operatorRuns(objects, 0);
  await showsPolicies(kubectl, ...HALF_WAY);
  const copy = await objects.policy('local-cluster/policies.kafka-cluster');
  assert.equal(copy?.status?.details?.[0]?.state, 'Suspended');
  await objects.merge(KAFKA, { spec: { kafka: { replicas: 1 } } });
  const changed = await objects.get(KAFKA);
  assert.deepEqual(changed?.spec, { kafka: { replicas: 1 } });

  await operatorRuns(objects, 1);
  await objects.sees(KAFKA, (object) => JSON.stringify(object?.spec) === '{"kafka":{"replicas":3}}');
  await showsPolicies(kubectl, ...DONE);
}

/** Stands in for nodes: the status of the operator's Deployment. */
async function operatorRuns(objects: LabObjects, replicas: 0 | 1): Promise<void> {
  await objects.setStatus(OPERATOR, { replicas: 1, readyReplicas: replicas, availableReplicas: replicas });
}
