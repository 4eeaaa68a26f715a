import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../resources/index.ts';
import { kstatusOf, type ObjectState } from './kstatus.ts';

type Fields = Readonly<Record<string, unknown>>;

const condition = (type: string, status: string, reason = '', message = '') => ({ type, status, reason, message });
const conditions = (...list: readonly unknown[]): Fields => ({ conditions: list });
const object = (apiVersion: string, kind: string, status: unknown, spec: Fields = {}): KubernetesObject => ({
  apiVersion,
  kind,
  metadata: { name: 'x', generation: 2 },
  spec,
  ...(status === undefined ? {} : { status }),
});
const available = conditions(condition('Available', 'True'));
const three = { replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3 };
const scheduled = {
  observedGeneration: 2,
  desiredNumberScheduled: 2,
  currentNumberScheduled: 2,
  updatedNumberScheduled: 2,
  numberAvailable: 2,
  numberReady: 2,
};
const crashing = { containerStatuses: [{ name: 'a', state: { waiting: { reason: 'CrashLoopBackOff' } } }] };

const CASES: readonly (readonly [string, KubernetesObject, ObjectState['status'] | undefined])[] = [
  ['a Deployment', object('apps/v1', 'Deployment', { ...three, ...available }, { replicas: 3 }), 'Current'],
  ['a Deployment that nobody has seen', object('apps/v1', 'Deployment', undefined), 'InProgress'],
  [
    'a Deployment with old replicas',
    object('apps/v1', 'Deployment', { ...three, ...available }, { replicas: 2 }),
    'InProgress',
  ],
  [
    'a Deployment that is not updated',
    object('apps/v1', 'Deployment', { ...three, updatedReplicas: 1, ...available }, { replicas: 3 }),
    'InProgress',
  ],
  ['a Deployment that is not available', object('apps/v1', 'Deployment', three, { replicas: 3 }), 'InProgress'],
  [
    'a Deployment past its deadline',
    object('apps/v1', 'Deployment', conditions(condition('Progressing', 'False', 'ProgressDeadlineExceeded'))),
    'Failed',
  ],
  [
    'an object with a status of an older spec',
    object('apps/v1', 'Deployment', { ...three, ...available, observedGeneration: 1 }, { replicas: 3 }),
    'InProgress',
  ],
  [
    'a StatefulSet',
    object('apps/v1', 'StatefulSet', { ...three, currentRevision: 'a', updateRevision: 'a' }, { replicas: 3 }),
    'Current',
  ],
  [
    'a StatefulSet in an update',
    object('apps/v1', 'StatefulSet', { ...three, currentRevision: 'a', updateRevision: 'b' }, { replicas: 3 }),
    'InProgress',
  ],
  ['a StatefulSet without pods', object('apps/v1', 'StatefulSet', {}, {}), 'InProgress'],
  ['a StatefulSet with too many pods', object('apps/v1', 'StatefulSet', three, {}), 'InProgress'],
  [
    'a StatefulSet that users update',
    object('apps/v1', 'StatefulSet', {}, { updateStrategy: { type: 'OnDelete' } }),
    'Current',
  ],
  [
    'a StatefulSet updated to its partition',
    object(
      'apps/v1',
      'StatefulSet',
      { ...three, updatedReplicas: 1, currentRevision: 'a', updateRevision: 'b' },
      { replicas: 3, updateStrategy: { rollingUpdate: { partition: 2 } } },
    ),
    'Current',
  ],
  ['a DaemonSet', object('apps/v1', 'DaemonSet', scheduled), 'Current'],
  ['a DaemonSet that is not ready', object('apps/v1', 'DaemonSet', { ...scheduled, numberReady: 1 }), 'InProgress'],
  ['a DaemonSet that nobody has seen', object('apps/v1', 'DaemonSet', {}), 'InProgress'],
  ['a complete Job', object('batch/v1', 'Job', conditions(condition('Complete', 'True'))), 'Current'],
  ['a failed Job', object('batch/v1', 'Job', conditions(condition('Failed', 'True'))), 'Failed'],
  ['a running Job', object('batch/v1', 'Job', { startTime: '2026-01-01T00:00:00Z', active: 1 }), 'InProgress'],
  ['a suspended Job', object('batch/v1', 'Job', conditions(condition('Suspended', 'True'))), 'InProgress'],
  ['a ready Pod', object('v1', 'Pod', { phase: 'Running', ...conditions(condition('Ready', 'True')) }), 'Current'],
  ['a Pod that starts', object('v1', 'Pod', { phase: 'Running' }), 'InProgress'],
  ['a Pod that crashes', object('v1', 'Pod', { phase: 'Running', ...crashing }), 'Failed'],
  ['a Pod that waits', object('v1', 'Pod', { phase: 'Pending' }), 'InProgress'],
  ['a Pod that succeeded', object('v1', 'Pod', { phase: 'Succeeded' }), 'Current'],
  ['a Pod that failed', object('v1', 'Pod', { phase: 'Failed' }), 'Failed'],
  ['a bound claim', object('v1', 'PersistentVolumeClaim', { phase: 'Bound' }), 'Current'],
  ['an unbound claim', object('v1', 'PersistentVolumeClaim', {}), 'InProgress'],
  ['a Namespace', object('v1', 'Namespace', { phase: 'Active' }), 'Current'],
  ['a ConfigMap', object('v1', 'ConfigMap', undefined), 'Current'],
  [
    'an established CRD',
    object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', conditions(condition('Established', 'True'))),
    'Current',
  ],
  ['a new CRD', object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', conditions()), 'InProgress'],
  [
    'a CRD whose names are taken',
    object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', conditions(condition('NamesAccepted', 'False'))),
    'Failed',
  ],
  ['a ready custom resource', object('a.example/v1', 'Thing', conditions(condition('Ready', 'True'))), 'Current'],
  ['one that is not ready', object('a.example/v1', 'Thing', conditions(condition('Ready', 'False'))), 'InProgress'],
  [
    'one that reconciles',
    object('a.example/v1', 'Thing', conditions(condition('Ready', 'True'), condition('Reconciling', 'True'))),
    'InProgress',
  ],
  ['one that is stalled', object('a.example/v1', 'Thing', conditions(condition('Stalled', 'True'))), 'Failed'],
  ['one whose spec was observed', object('a.example/v1', 'Thing', { observedGeneration: 2 }), 'Current'],
  ['one whose status says nothing', object('a.example/v1', 'Thing', { phase: 'Great' }), undefined],
  ['one without a status', object('a.example/v1', 'Thing', undefined), undefined],
  [
    'an active ClusterAdmissionPolicy',
    object(
      'policies.kubewarden.io/v1',
      'ClusterAdmissionPolicy',
      conditions(condition('Ready', 'True'), condition('PolicyActive', 'True')),
    ),
    'Current',
  ],
  [
    "one of Kubewarden's controllers",
    object('policies.kubewarden.io/v1', 'ClusterAdmissionPolicy', conditions(condition('PolicyActive', 'True'))),
    'Current',
  ],
  [
    'one that is not ready though active',
    object(
      'policies.kubewarden.io/v1',
      'ClusterAdmissionPolicy',
      conditions(condition('Ready', 'False'), condition('PolicyActive', 'True')),
    ),
    'InProgress',
  ],
  [
    'one that no controller has seen',
    object('policies.kubewarden.io/v1', 'AdmissionPolicy', { observedGeneration: -1 }),
    'InProgress',
  ],
  [
    'malformed conditions',
    object('a.example/v1', 'Thing', { conditions: [null, 3, { type: 'Ready', status: 'yes' }] }),
    'InProgress',
  ],
];

describe('kstatusOf', () => {
  for (const [name, value, expected] of CASES) {
    it(`reads ${name} as ${expected ?? 'unknown'}`, () => {
      assert.equal(kstatusOf(value)?.status, expected);
    });
  }

  it('reads a deleted object as Terminating, and never by inherited fields', () => {
    const deleted = object('v1', 'ConfigMap', undefined);
    assert.equal(
      kstatusOf({ ...deleted, metadata: { name: 'x', deletionTimestamp: '2026-01-01T00:00:00Z' } })?.status,
      'Terminating',
    );
    assert.equal(kstatusOf(object('constructor/v1', 'toString', {})), undefined);
  });
});
