// The mission's first example: an operator, and what it operates, in order. The example has a CRD without fields in place of
// Strimzi's, and this scenario writes the status that the operator's Deployment would have.
import assert from 'node:assert/strict';
import { type ExampleCluster, governanceExample, showsPolicies, showsTable } from './example-cluster.ts';
import type { Policy } from '../../src/resources/index.ts';
import type { CommandResult } from '../cli/command.ts';
import type { LabObject, LabObjects } from './lab-objects.ts';

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

const CLUSTER_POLICY = { kind: 'Policy', name: 'policies/kafka-cluster' };

/** A change of the Policy of the cluster whose template calls what does not exist. */
const BAD_CHANGE = [
  'patch',
  'policy',
  'kafka-cluster',
  '-n',
  'policies',
  '--type=json',
  '-p',
  JSON.stringify([
    {
      op: 'replace',
      path: '/spec/policy-templates/0/objectDefinition/spec/object-templates/0/objectDefinition/spec/kafka/replicas',
      value: '{{ replicasOf "events" }}',
    },
  ]),
];

/** Keeps the last good revision applied while a change fails, and goes back by kubectl. Continues {@link kafkaInOrder}. */
export async function kafkaWithABadChange({ objects, kubectl }: ExampleCluster): Promise<void> {
  await kubectl(BAD_CHANGE);
  await kubectl(['wait', 'policy/kafka-cluster', '-n', 'policies', '--for=jsonpath={.status.phase}=Degraded']);
  const { status } = (await objects.sees(CLUSTER_POLICY, hasSettled)) as unknown as Policy;
  assert.deepEqual([status?.compliant, status?.servingRevision, status?.desiredRevision], ['Compliant', 1, 2]);
  assert.match(
    status?.message ?? '',
    /^revision 2 failed: spec\.policy-templates\[0\].*replicasOf.*; revision 1 stays applied/,
  );
  // What is applied is still kept.
  await objects.merge(KAFKA, { spec: { kafka: { replicas: 1 } } });
  await objects.sees(KAFKA, (object) => JSON.stringify(object?.spec) === '{"kafka":{"replicas":3}}');

  await kubectl(['annotate', 'policy', 'kafka-cluster', '-n', 'policies', 'portcullis.dev/rollback-to=previous']);
  await kubectl(['wait', 'policy/kafka-cluster', '-n', 'policies', '--for=jsonpath={.status.servingRevision}=3']);
  const after = (await objects.sees(CLUSTER_POLICY, hasSettled)) as unknown as Policy;
  assert.deepEqual([after.status?.phase, after.status?.compliant], ['Active', 'Compliant']);
  assert.equal(after.status?.revisions?.[0]?.cause, 'rollback to 1');
}

/** The same by the command line. Continues {@link kafkaWithABadChange}. */
export async function kafkaUndone(
  { objects, kubectl }: ExampleCluster,
  portcullis: (...args: readonly string[]) => Promise<CommandResult>,
): Promise<void> {
  const policy = ['policy/kafka-cluster', '-n', 'policies'];
  await kubectl(BAD_CHANGE);
  const failed = await portcullis('rollout', 'status', ...policy);
  assert.match(
    failed.stderr,
    /kafka-cluster: Degraded: TemplateError: revision 4 failed: .*; revision 3 stays applied/,
  );
  assert.equal(failed.code, 1);
  const explained = await portcullis('explain', ...policy);
  assert.match(explained.stdout, /is Degraded: revision 4 failed: .*replicasOf/);
  assert.match(explained.stdout, /rollout undo policy\/kafka-cluster -n policies/);
  const different = await portcullis('rollout', 'diff', ...policy);
  assert.match(different.stdout, /^\+ .*replicas: '\{\{ replicasOf "events" \}\}'$/m);
  const undone = await portcullis('rollout', 'undo', ...policy);
  assert.match(undone.stdout, /kafka-cluster rolled back to revision 3$/m, undone.stderr);
  const done = await portcullis('rollout', 'status', ...policy);
  assert.match(done.stdout, /kafka-cluster: Active: revision 5 is applied; compliance: (?:Compliant|not known yet)$/m);
  const { stdout: history } = await portcullis('rollout', 'history', ...policy);
  assert.match(history, /^4 +Failed +\S+ +generation \d+: policy-templates \(TemplateError\) +-$/m);
  assert.match(history, /^5 +Serving +\S+ +rollback to 3 +sha256:/m);
  const refused = await portcullis('rollout', 'refresh', ...policy);
  assert.match(refused.stderr, /is a governance policy/);
  await objects.sees(KAFKA, (object) => JSON.stringify(object?.spec) === '{"kafka":{"replicas":3}}');
}

/** Whether the status is about the newest generation. */
function hasSettled(object: LabObject | undefined): boolean {
  return object?.status?.observedGeneration === object?.metadata.generation && object?.status?.compliant !== undefined;
}

/** Stands in for nodes: the status of the operator's Deployment. */
async function operatorRuns(objects: LabObjects, replicas: 0 | 1): Promise<void> {
  await objects.setStatus(OPERATOR, { replicas: 1, readyReplicas: replicas, availableReplicas: replicas });
}
