import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyServerReport } from './policy-server-conditions.ts';
import { ReportBoard } from './report-board.ts';
import { policyServer } from './testing/policy-servers.ts';

describe('ReportBoard', () => {
  const report = (status: 'True' | 'False', reason: string): PolicyServerReport => ({
    generation: 1,
    image: 'i',
    moduleCache: 'emptyDir',
    conditions: [{ type: 'DeploymentReconciled', status, reason, message: 'm' }],
  });
  const open = (): { board: ReportBoard; told: string[]; events: string[] } => {
    const events: string[] = [];
    const told: string[] = [];
    const board = new ReportBoard({ event: (_, type, reason) => void events.push(`${type} ${reason}`) });
    board.subscribe((name) => told.push(name));
    return { board, told, events };
  };

  it('tells of what differs, and by events of what goes wrong and right again', () => {
    const { board, told, events } = open();
    const server = policyServer();
    for (const next of [
      report('True', 'ReconciliationSucceeded'),
      report('False', 'NameTaken'),
      report('False', 'NameTaken'),
      report('False', 'NotSupported'),
      report('True', 'ReconciliationSucceeded'),
    ]) {
      board.set(server, next);
    }
    assert.deepEqual(events, ['Warning NameTaken', 'Warning NotSupported', 'Normal ReconciliationSucceeded']);
    assert.equal(told.length, 4);
  });

  it('does not tell again what the leader before told', () => {
    const { board, events } = open();
    const condition = { ...report('False', 'NameTaken').conditions[0]!, lastTransitionTime: '2026-01-01T00:00:00Z' };
    const server = { ...policyServer(), status: { conditions: [condition] } };
    board.set(server, report('False', 'NameTaken'));
    assert.deepEqual(events, []);
  });

  it('does not tell it again either when it looks at that later than at the rest', () => {
    const { board, events } = open();
    const condition = { ...report('False', 'NameTaken').conditions[0]!, lastTransitionTime: '2026-01-01T00:00:00Z' };
    const server = { ...policyServer(), status: { conditions: [condition] } };
    board.set(server, { ...report('False', 'NameTaken'), conditions: [] });
    board.set(server, report('False', 'NameTaken'));
    assert.deepEqual(events, []);
  });
});
