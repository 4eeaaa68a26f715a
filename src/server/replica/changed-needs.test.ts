import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyMatch } from '../../resources/index.ts';
import type { WantedRevision } from '../policies/wanted-policy.ts';
import { changedNeeds } from './changed-needs.ts';

const MATCH: PolicyMatch = {
  bucket: 'b',
  isMutating: false,
  failurePolicy: 'Fail',
  matchPolicy: 'Exact',
  rules: [],
  namespaceSelector: { matchLabels: { env: 'prod' } },
  objectSelector: {},
  matchConditions: [],
  timeoutSeconds: 10,
};

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap' };
const snapshot = (name: string): object => ({ parameters: { from: { resource: { ...CONFIG_MAP, name } } } });
const revision = (name: string): WantedRevision => ({ name, uid: name, snapshot: snapshot(name), order: 0 });
const failed = { name: 'p-1', uid: '1', revision: 1, message: '', failurePolicy: 'Fail', match: MATCH } as const;
const waiting = { name: 'c', uid: 'c', revision: 3, snapshot: snapshot('c') };

describe('the needs of wanted policies', () => {
  it('are those of all revisions that serve, may serve soon, failed, or wait for parameters', () => {
    const needs = changedNeeds(
      new Map([
        ['all', { serving: revision('a'), staged: [revision('b')], waiting }],
        ['failed', { staged: [], failed }],
        ['removed', undefined],
      ]),
    );
    const kinds = ['a', 'b', 'c'].map((name) => ({ ...CONFIG_MAP, name }));
    assert.deepEqual(Object.fromEntries(needs), {
      all: { kinds, readsNamespaces: false, annotations: [] },
      failed: { kinds: [], readsNamespaces: true, annotations: [] },
      removed: undefined,
    });
  });
});
