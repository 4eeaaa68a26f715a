import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLog } from '../../log/index.ts';
import type { AdmissionPolicyObject } from '../../resources/index.ts';
import { until } from '../testing/until.ts';
import type { TypeCheckReport } from './type-check-report.ts';
import { TypeCheckReports } from './type-check-reports.ts';

const GOOD: TypeCheckReport = { unserved: [], warnings: [], expressions: 1, kinds: ['v1 Pod'] };

function policy(generation: number, uid = 'u'): AdmissionPolicyObject {
  return {
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'one', uid, generation },
    spec: { rules: [] },
  } as unknown as AdmissionPolicyObject;
}

/** Reports with checks that a test answers. */
interface Scene {
  readonly reports: TypeCheckReports;
  readonly answer: (report: TypeCheckReport) => Promise<void>;
  readonly started: () => number;
  readonly requeued: string[];
  revision: string;
}

function scene(): Scene {
  const open: ((report: TypeCheckReport) => void)[] = [];
  const requeued: string[] = [];
  let started = 0;
  const state: Scene = {
    revision: '1',
    requeued,
    started: () => started,
    answer: async (report: TypeCheckReport) => {
      open.shift()?.(report);
      await Promise.resolve();
      await Promise.resolve();
    },
    reports: new TypeCheckReports({
      checks: {
        check: () => {
          started += 1;
          return new Promise((resolve) => open.push(resolve));
        },
      },
      openApi: { revision: async () => state.revision, document: async () => undefined },
      requeue: (id) => requeued.push(id),
      log: createLog({ level: 'silent' }),
      intervalMs: 5,
    }),
  };
  return state;
}

describe('reports on policies', () => {
  it('come after a check in the background, once for each generation', async () => {
    const { reports, answer, requeued, started } = scene();
    assert.equal(reports.of('one', policy(1)), undefined);
    assert.equal(reports.of('one', policy(1)), undefined);
    assert.equal(started(), 1);
    await answer(GOOD);
    assert.deepEqual(requeued, ['one']);
    assert.equal(reports.of('one', policy(1)), GOOD);
    assert.equal(reports.of('one', policy(2)), undefined);
    assert.equal(reports.of('one', policy(2, 'another')), undefined);
    assert.equal(started(), 3);
  });

  it('of an earlier generation come too late', async () => {
    const { reports, answer, requeued } = scene();
    reports.of('one', policy(1));
    reports.of('one', policy(2));
    await answer(GOOD);
    assert.deepEqual(requeued, []);
    assert.equal(reports.of('one', policy(2)), undefined);
  });

  it('are renewed after the schemas have changed, and stay until then', async () => {
    const one = scene();
    const ended = new AbortController();
    const running = one.reports.start(ended.signal);
    one.reports.of('one', policy(1));
    await one.answer(GOOD);
    one.requeued.length = 0;
    one.revision = '2';
    await until(() => one.requeued.length > 0);
    assert.equal(one.reports.of('one', policy(1)), GOOD);
    assert.equal(one.started(), 2);
    const worse = { ...GOOD, unserved: [{ field: 'a', message: 'b' }] };
    await one.answer(worse);
    assert.equal(one.reports.of('one', policy(1)), worse);
    ended.abort();
    await running;
  });

  it('are tried again while the cluster cannot be read', async () => {
    const one = scene();
    const ended = new AbortController();
    const running = one.reports.start(ended.signal);
    one.reports.of('one', policy(1));
    await one.answer({ ...GOOD, skipped: 'no answer', isTransient: true });
    one.requeued.length = 0;
    await until(() => one.requeued.length > 0);
    one.reports.of('one', policy(1));
    assert.equal(one.started(), 2);
    ended.abort();
    await running;
  });

  it('that say the same reconcile nothing, nor do those on a deleted policy', async () => {
    const { reports, answer, requeued } = scene();
    reports.of('one', policy(1));
    reports.forget('one');
    await answer(GOOD);
    assert.deepEqual(requeued, []);
  });
});
