import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyServerReport } from './policy-server-conditions.ts';
import { ReportStore } from './report-store.ts';
import { policyServer } from './testing/policy-servers.ts';

describe('ReportStore', () => {
  const report = (status: 'True' | 'False', reason: string): PolicyServerReport => ({
    generation: 1,
    image: 'i',
    moduleCache: 'emptyDir',
    conditions: [{ type: 'DeploymentReconciled', status, reason, message: 'm' }],
  });
  const open = (): { store: ReportStore; changes: string[]; events: string[] } => {
    const events: string[] = [];
    const changes: string[] = [];
    const store = new ReportStore({ event: (_, type, reason) => void events.push(`${type} ${reason}`) });
    store.subscribe((name) => changes.push(name));
    return { store, changes, events };
  };

  it('publishes changed reports, and events of failures and recoveries', () => {
    const { store, changes, events } = open();
    const server = policyServer();
    for (const next of [
      report('True', 'ReconciliationSucceeded'),
      report('False', 'NameTaken'),
      report('False', 'NameTaken'),
      report('False', 'VerificationConfigInvalid'),
      report('True', 'ReconciliationSucceeded'),
    ]) {
      store.set(server, next);
    }
    assert.deepEqual(events, [
      'Warning NameTaken',
      'Warning VerificationConfigInvalid',
      'Normal ReconciliationSucceeded',
    ]);
    assert.equal(changes.length, 4);
  });

  it('writes no event that the previous leader has written', () => {
    const { store, events } = open();
    const condition = { ...report('False', 'NameTaken').conditions[0]!, lastTransitionTime: '2026-01-01T00:00:00Z' };
    const server = { ...policyServer(), status: { conditions: [condition] } };
    store.set(server, report('False', 'NameTaken'));
    assert.deepEqual(events, []);
  });

  it('writes none for a condition that is reported later than others either', () => {
    const { store, events } = open();
    const condition = { ...report('False', 'NameTaken').conditions[0]!, lastTransitionTime: '2026-01-01T00:00:00Z' };
    const server = { ...policyServer(), status: { conditions: [condition] } };
    store.set(server, { ...report('False', 'NameTaken'), conditions: [] });
    store.set(server, report('False', 'NameTaken'));
    assert.deepEqual(events, []);
  });
});
