import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../cluster/index.ts';
import type { PolicyException } from '../../resources/index.ts';
import { readGuard } from './exception-guard.ts';
import { exceptionStatus, type GuardState } from './exception-status.ts';

const CREATED = Date.parse('2026-11-01T12:00:00Z');
const NOW = CREATED + 86_400_000;

/** Its status says that it is accepted, as whoever may write it can say while nobody guards it. */
const EXCEPTION: PolicyException = {
  apiVersion: 'portcullis.dev/v1',
  kind: 'PolicyException',
  metadata: { namespace: 'shop', name: 'one', uid: 'uid-1', generation: 1, creationTimestamp: '2026-11-01T12:00:00Z' },
  spec: {
    policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned' }],
    objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['importer'] },
    reason: 'a test',
    expiresAt: '2027-01-31T12:00:00Z',
  },
  status: {
    state: 'Active',
    accepted: {
      uid: 'uid-1',
      generation: 1,
      policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned', uid: 'policy-1' }],
    },
  },
};

function statusWith(guard: GuardState): readonly unknown[] {
  const { state, accepted, conditions } = exceptionStatus(EXCEPTION, { uidOf: () => 'policy-1', guard, now: NOW });
  return [state, accepted?.uid, conditions?.[0]?.reason];
}

describe('an exception whose status says that it is accepted', () => {
  it('is not in force if it was created before the guards, when anybody could have written that', () => {
    assert.deepEqual(statusWith({ since: CREATED }), ['Refused', undefined, 'CreatedUnguarded']);
    assert.deepEqual(statusWith({ since: CREATED + 60_000 }), ['Refused', undefined, 'CreatedUnguarded']);
  });

  it('stays in force if it was created after the guards, and while they are missing', () => {
    for (const guard of [{ since: CREATED - 1 }, 'missing', 'not-needed'] as const) {
      assert.deepEqual(statusWith(guard), ['Active', 'uid-1', 'Active']);
    }
  });
});

describe('the guards of exceptions', () => {
  const clusterWithout = (missing: string): Parameters<typeof readGuard>[0] => ({
    get: async (type, { name }) => {
      if (name === missing) {
        throw ApiError.notFound(type, name);
      }
      // All that is read of it.
      return { ...EXCEPTION, metadata: { name, creationTimestamp: '2026-11-01T12:00:00Z' } } as never;
    },
  });
  const read = (missing: string): Promise<GuardState> =>
    readGuard(clusterWithout(missing), new AbortController().signal);

  it('are in force ten seconds after the last of them was created', async () => {
    assert.deepEqual(await read('none'), { since: CREATED + 10_000 });
  });

  it('are missing without the one that lets only the controller accept', async () => {
    assert.equal(await read('portcullis-exceptions'), 'missing');
    assert.equal(await read('portcullis-exception-status'), 'missing');
  });
});
