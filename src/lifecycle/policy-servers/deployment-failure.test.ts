import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deploymentFailure, rolloutProgress } from './deployment-failure.ts';
import type { Deployment } from './ownership.ts';

const deployment = (...conditions: NonNullable<NonNullable<Deployment['status']>['conditions']>): Deployment => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {},
  status: { conditions },
});

describe('deploymentFailure', () => {
  it('is undefined while the Deployment has its pods, or makes progress', () => {
    const progressing = { type: 'Progressing', status: 'True', reason: 'ReplicaSetUpdated' };
    assert.equal(deploymentFailure({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: {} }), undefined);
    assert.equal(deploymentFailure(deployment(progressing, { type: 'Available', status: 'False' })), undefined);
  });

  it('reports that pods are not created or not ready, with the message of the cluster', () => {
    const stuck = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'timed out' };
    const refused = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'quota' };
    assert.deepEqual(deploymentFailure(deployment(stuck)), {
      reason: 'PodsNotReady',
      message: 'new pods do not become ready: timed out',
    });
    assert.equal(deploymentFailure(deployment(stuck, refused))?.reason, 'PodsNotCreated');
  });
});

describe('rolloutProgress', () => {
  const rolling = (generation: number, status: Deployment['status']): string | undefined =>
    rolloutProgress({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { generation },
      spec: { replicas: 2 },
      ...(status === undefined ? {} : { status }),
    });

  it('reports progress until only new pods exist', () => {
    const done = { observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2 };
    assert.equal(rolling(2, done), undefined);
    assert.equal(rolling(3, done), '0 of 2 pods are of the newest version');
    assert.equal(rolling(2, { ...done, updatedReplicas: 1 }), '1 of 2 pods are of the newest version');
    assert.equal(rolling(2, { ...done, replicas: 3 }), '2 of 2 pods are of the newest version');
  });

  it('waits for pods that are not ready', () => {
    const status = { observedGeneration: 2, replicas: 2, updatedReplicas: 2 };
    assert.equal(rolling(2, status), '0 of 2 pods are ready');
    assert.equal(rolling(2, { ...status, readyReplicas: 1 }), '1 of 2 pods are ready');
  });

  it('is undefined where no controller writes the status', () => {
    assert.equal(rolling(1, undefined), undefined);
  });
});
