import assert from 'node:assert/strict';
import { it } from 'node:test';
import { REVISION_KINDS, revisionNumberOf, rolledBack } from './stored-revisions.ts';

const [DEPLOYMENTS, STATEFUL_SETS] = REVISION_KINDS;

function template(image: string, labels: Readonly<Record<string, string>> = {}): object {
  return { metadata: { labels: { app: 'db', ...labels } }, spec: { containers: [{ name: 'main', image }] } };
}

function workload(image: string): object {
  return { apiVersion: 'apps/v1', metadata: { name: 'db' }, spec: { replicas: 3, template: template(image) } };
}

it('puts the stored template of a ReplicaSet into its Deployment, without the label of its controller', () => {
  const stored = { spec: { template: template('db:1', { 'pod-template-hash': '5d4f' }) } };
  assert.ok(DEPLOYMENTS);
  assert.deepEqual(rolledBack(workload('db:2') as never, stored as never, DEPLOYMENTS), {
    ...workload('db:1'),
    spec: { replicas: 3, template: template('db:1') },
  });
  assert.equal(rolledBack(workload('db:1') as never, stored as never, DEPLOYMENTS), undefined);
});

it('reads the stored template of a ControllerRevision, which is a patch', () => {
  const stored = { data: { spec: { template: { ...template('db:1'), $patch: 'replace' } } }, revision: 4 };
  assert.ok(STATEFUL_SETS);
  assert.deepEqual(rolledBack(workload('db:2') as never, stored as never, STATEFUL_SETS), workload('db:1'));
  assert.equal(rolledBack(workload('db:1') as never, stored as never, STATEFUL_SETS), undefined);
  assert.equal(rolledBack(workload('db:1') as never, { data: 'x' }, STATEFUL_SETS), undefined);
  assert.equal(revisionNumberOf(stored as never), '4');
});
