import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podCells } from './pod.ts';

const NOW = Date.parse('2026-01-02T03:04:05Z');

/** READY, STATUS and RESTARTS. test/e2e/builtin-kinds.full.test.ts compares them with those of a real API server. */
function shown(status: object, spec: object = {}, metadata: object = {}): readonly unknown[] {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', ...metadata },
    spec: { containers: [{ name: 'main' }], ...spec },
    status,
  };
  return podCells(pod, NOW).slice(1, 4);
}

describe('the table of pods', () => {
  it('shows the reason of a waiting container', () => {
    const state = { waiting: { reason: 'CrashLoopBackOff' } };
    const lastState = { terminated: { finishedAt: '2026-01-02T03:03:05Z' } };
    const containerStatuses = [{ name: 'main', ready: false, restartCount: 4, state, lastState }];
    assert.deepEqual(shown({ phase: 'Running', containerStatuses }), ['0/1', 'CrashLoopBackOff', '4 (60s ago)']);
  });

  it('counts init containers that are done', () => {
    const initContainerStatuses = [
      { name: 'one', state: { terminated: { exitCode: 0 } } },
      { name: 'two', state: { running: {} } },
    ];
    const initContainers = [{ name: 'one' }, { name: 'two' }];
    assert.deepEqual(shown({ phase: 'Pending', initContainerStatuses }, { initContainers }), ['0/1', 'Init:1/2', '0']);
  });

  it('counts sidecars among the containers', () => {
    const status = {
      phase: 'Running',
      initContainerStatuses: [{ name: 'proxy', ready: true, started: true, state: { running: {} } }],
      containerStatuses: [{ name: 'main', ready: true, state: { running: {} } }],
    };
    const spec = { initContainers: [{ name: 'proxy', restartPolicy: 'Always' }] };
    assert.deepEqual(shown(status, spec), ['2/2', 'Running', '0']);
  });

  it('shows why containers ended', () => {
    const ended = (terminated: object): unknown =>
      shown({ phase: 'Failed', containerStatuses: [{ name: 'main', state: { terminated } }] })[1];
    assert.deepEqual([{ exitCode: 3 }, { exitCode: 137, signal: 9 }, { exitCode: 1, reason: 'OOMKilled' }].map(ended), [
      'ExitCode:3',
      'Signal:9',
      'OOMKilled',
    ]);
  });

  it('shows that a pod is terminating', () => {
    const deletionTimestamp = '2026-01-02T03:04:05Z';
    assert.equal(shown({ phase: 'Running' }, {}, { deletionTimestamp })[1], 'Terminating');
    assert.equal(shown({ phase: 'Succeeded' }, {}, { deletionTimestamp })[1], 'Succeeded');
  });
});
