import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RevisionReport } from '../../control/index.ts';
import { type WatchedChange, WatchedObjects } from '../../evaluation/index.ts';
import type { WaitingRevision } from '../policies/wanted-policy.ts';
import { ParameterWaits } from './parameter-waits.ts';
import { namespacesOfFingerprint, parametersFingerprint } from './parameters-fingerprint.ts';

const PROFILE = { apiVersion: 'example.com/v1', kind: 'Profile' };
const WAITING: WaitingRevision = {
  name: 'kw.cap.p-2',
  uid: 'u',
  revision: 2,
  snapshot: { parameters: { from: { resource: { ...PROFILE, name: 'profile' } }, settingsExpression: '{}' } },
};

describe('a revision that waits for other parameters', () => {
  let objects: WatchedObjects;
  let reports: (readonly RevisionReport[])[];
  let waits: ParameterWaits;
  beforeEach(() => {
    [objects, reports] = [new WatchedObjects(), []];
    waits = new ParameterWaits({
      objects: () => objects.changes(),
      changed: (all) => reports.push(all),
      delayMs: 1,
    });
  });
  afterEach(() => waits.stop());

  const want = (waiting?: WaitingRevision): void =>
    waits.want(new Map([['kw.cap.p', { staged: [], ...(waiting && { waiting }) }]]), false);
  const put = (text: string, isAll = false): void => {
    const change: WatchedChange = { ...PROFILE, isAll, objects: [[{ namespace: 'a', name: 'profile' }, text]] };
    objects.apply(change);
    waits.apply(change);
  };
  const reported = async (count: number): Promise<void> => {
    while (reports.length < count) {
      await sleep(1);
    }
  };

  it('is reported with the fingerprint of these, once all were read', async () => {
    want(WAITING);
    put('{}');
    await sleep(5);
    assert.equal(reports.length, 0);
    put('{}', true);
    await reported(1);
    put('[]');
    await reported(2);
    put('{}');
    await reported(3);
    const [first, second, third] = reports.flat();
    assert.partialDeepStrictEqual(first, { name: 'kw.cap.p-2', uid: 'u', state: 'Failed', policy: 'kw.cap.p' });
    assert.notEqual(second?.parameters, first?.parameters);
    assert.deepEqual(third, first);
  });

  it('is reported with the parameters of the namespaces that were refused', async () => {
    const tried = parametersFingerprint(WAITING.snapshot, undefined, [], ['b']) ?? '';
    want({ ...WAITING, tried });
    put('{}', true);
    await reported(1);
    assert.deepEqual(namespacesOfFingerprint(reports[0]?.[0]?.parameters), ['b']);
    put('[]');
    await sleep(5);
    assert.equal(reports.length, 1);
  });

  it('is reported no more when it serves', async () => {
    want(WAITING);
    put('{}', true);
    await reported(1);
    want();
    await reported(2);
    assert.deepEqual(reports[1], []);
  });
});
