import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../cluster/index.ts';
import type { PolicyException } from '../../resources/index.ts';
import { readGuard } from './exception-guard.ts';
import { type ExceptionFacts, exceptionStatus, type GuardState, nextChange } from './exception-status.ts';

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

function statusOf(facts: Partial<ExceptionFacts>, exception = EXCEPTION): NonNullable<PolicyException['status']> {
  const uidOf = (): string => 'policy-1';
  return exceptionStatus(exception, { uidOf, guard: 'not-needed', uses: {}, silent: [], now: NOW, ...facts });
}

function statusWith(guard: GuardState): readonly unknown[] {
  const { state, accepted, conditions } = statusOf({ guard });
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

describe('an exception in force', () => {
  const DAY_MS = 86_400_000;
  const later = (days: number): number => CREATED + days * DAY_MS;
  /** Ends after a year, accepted when it was created. */
  const LONG: PolicyException = {
    ...EXCEPTION,
    spec: { ...EXCEPTION.spec, expiresAt: '2027-10-31T12:00:00Z' },
    status: statusOf({ now: CREATED }),
  };
  const useOf = (facts: Partial<ExceptionFacts>, exception = LONG): string => {
    const { state, conditions = [] } = statusOf(facts, exception);
    const { status, reason } = conditions.find(({ type }) => type === 'Used') ?? {};
    return [state, status, reason].join(' ');
  };

  it('is unused when nothing has used it for 32 days since it was accepted', () => {
    assert.equal(LONG.status?.accepted?.since, '2026-11-01T12:00:00Z');
    assert.equal(useOf({ now: later(31) }), 'Active Unknown NotUsedYet');
    assert.equal(nextChange(LONG, statusOf({ now: later(31) }, LONG), later(31)), later(32));
    assert.equal(useOf({ now: later(32) }), 'Unused False Unused');
  });

  it('is used by a request, for as long', () => {
    const uses = { used: 1, lastUsed: '2026-11-11T12:00:00Z' };
    assert.equal(useOf({ uses, now: later(41) }), 'Active True RequestsExcepted');
    assert.equal(useOf({ uses, now: later(42) }), 'Unused False Unused');
  });

  it('is not unused where replicas are not connected that may know a use', () => {
    const silent = ['a', 'b', 'c', 'd'];
    assert.equal(useOf({ silent, now: later(40) }), 'Active Unknown ReplicasNotConnected');
    const { conditions = [] } = statusOf({ silent, now: later(40) }, LONG);
    assert.match(conditions.at(-1)?.message ?? '', /since 2026-11-01T12:00:00Z, .* not connected: a, b, c and 1 more$/);
    assert.equal(nextChange(LONG, statusOf({ silent, now: later(40) }, LONG), later(40)), later(40) + 600_000);
  });

  it('stays what it was while a controller that starts does not know the replicas', () => {
    const unused = { ...LONG, status: statusOf({ now: later(40) }, LONG) };
    assert.equal(useOf({ silent: undefined, now: later(41) }, unused), 'Unused False Unused');
    assert.equal(useOf({ silent: undefined, now: later(41) }), 'Active Unknown NotUsedYet');
  });

  it('counts anew from a change of its spec, also where it was used before', () => {
    const changed = { ...LONG, metadata: { ...LONG.metadata, generation: 2 } };
    const uses = { used: 1, lastUsed: '2026-11-02T12:00:00Z' };
    const now = later(40);
    assert.equal(useOf({ uses, now }, changed), 'Active Unknown NotUsedYet');
    assert.equal(statusOf({ uses, now }, changed).accepted?.since, new Date(now).toISOString().replace('.000', ''));
  });

  it('says that it ends soon rather than that it is unused, and nothing of its use afterwards', () => {
    const end = Date.parse(LONG.spec.expiresAt);
    assert.equal(useOf({ now: end - DAY_MS }), 'ExpiringSoon False Unused');
    assert.equal(useOf({ now: end }), 'Expired  ');
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
