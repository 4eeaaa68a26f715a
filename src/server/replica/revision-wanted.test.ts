import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { POLICY_SERVER_LABEL, type PolicyRevision, type RevisionState } from '../../resources/index.ts';
import { trimRevision, wantedOf } from './revision-wanted.ts';

type Status = NonNullable<PolicyRevision['status']>;

function revision(number: number, state: RevisionState | undefined, status: Status = {}): PolicyRevision {
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: {
      name: `kw.cap.p-${number}`,
      namespace: 'portcullis',
      uid: `uid-${number}`,
      labels: { [POLICY_SERVER_LABEL]: 'default' },
      annotations: { some: 'text' },
    },
    spec: {
      policy: { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name: 'p', uid: 'u' },
      policyId: 'kw.cap.p',
      policyServer: 'default',
      revision: number,
      policyGeneration: number,
      snapshot: { module: 'm', failurePolicy: 'Ignore' },
    },
    status: { ...(state === undefined ? {} : { state }), ...status },
  };
}

/** Numbers of the wanted revisions. */
function numbers(...revisions: PolicyRevision[]): {
  serving: number | undefined;
  staged: number[];
  failed: string | undefined;
} {
  const { serving, staged, failed } = wantedOf(revisions, 'portcullis');
  return { serving: serving?.revision, staged: staged.map((one) => one.revision ?? 0), failed: failed?.message };
}

describe('revisions of a policy', () => {
  it('in state Serving: the one with the highest order serves', () => {
    assert.deepEqual(
      numbers(revision(1, 'Serving', { order: 3 }), revision(2, 'Serving', { order: 1 }), revision(3, 'Retired')),
      { serving: 1, staged: [], failed: undefined },
    );
    assert.equal(numbers(revision(1, 'Serving', { order: 1 }), revision(2, 'Serving', { order: 1 })).serving, 2);
  });

  it('that were validated are staged, by number', () => {
    assert.deepEqual(
      numbers(
        revision(4, 'Staged'),
        revision(2, 'Serving', { order: 1 }),
        revision(3, 'Validated'),
        revision(5, 'Failed'),
      ),
      { serving: 2, staged: [3, 4], failed: undefined },
    );
  });

  it('that never served answer by their failurePolicy once the controller says so', () => {
    const first = revision(1, 'Validated', { enforced: true });
    assert.deepEqual(numbers(first), { serving: undefined, staged: [1], failed: 'no replica can load it' });
    assert.equal(wantedOf([trimRevision(first)], 'portcullis').failed?.failurePolicy, 'Ignore');
    assert.equal(numbers(revision(1, 'Validated')).failed, undefined);
  });

  it('that are new have no effect', () => {
    assert.deepEqual(numbers(revision(1, undefined)), { serving: undefined, staged: [], failed: undefined });
    assert.deepEqual(numbers(revision(1, 'Candidate'), revision(2, 'Superseded')), {
      serving: undefined,
      staged: [],
      failed: undefined,
    });
  });

  it('without one to serve give the message and failurePolicy of the newest failed one', () => {
    const failed = revision(2, 'Failed', { reason: 'InvalidSettings', message: 'no list' });
    assert.deepEqual(wantedOf([revision(1, 'Retired'), failed], 'portcullis').failed, {
      name: 'kw.cap.p-2',
      uid: 'uid-2',
      revision: 2,
      message: 'no list',
      failurePolicy: 'Ignore',
    });
    assert.equal(
      wantedOf([revision(1, 'Candidate', { reason: 'FetchFailed' })], 'portcullis').failed?.message,
      'FetchFailed',
    );
    assert.equal(
      wantedOf([failed, revision(3, 'Candidate')], 'portcullis').failed,
      undefined,
      'the newest has not failed',
    );
    assert.equal(wantedOf([failed, revision(1, 'Validated')], 'portcullis').failed, undefined, 'one may serve soon');
  });

  it('without one to serve give the failurePolicy of what served until the newest failed', () => {
    const rejecting = (number: number, order: number): PolicyRevision =>
      revision(number, 'Retired', { reason: 'DegradedRejected', message: 'revision 3 failed', order });
    const failed = revision(3, 'Failed', { reason: 'InvalidSettings', message: 'no list' });
    const all = [rejecting(1, 1), rejecting(2, 2), failed].map(trimRevision);
    const { name, revision: number, message } = wantedOf(all, 'portcullis').failed ?? {};
    assert.deepEqual([name, number, message], ['kw.cap.p-2', 2, 'no list']);
    const fixed = [rejecting(2, 2), failed, revision(4, 'Validated')].map(trimRevision);
    assert.equal(wantedOf(fixed, 'portcullis').failed?.revision, 2, 'until a correction serves');
    const back = [rejecting(1, 1), revision(2, 'Validated', { order: 2 }), failed].map(trimRevision);
    assert.equal(wantedOf(back, 'portcullis').failed, undefined, 'what served last is on its way again');
  });

  it('without one to serve match no request once the policy is disarmed, whatever came after', () => {
    const disarmed = revision(1, 'Retired', { reason: 'Disarmed', message: 'INC-1', order: 1 });
    for (const newer of [[], [revision(2, 'Candidate')], [revision(2, 'Failed', { reason: 'InvalidSettings' })]]) {
      const { failed, serving } = wantedOf([disarmed, ...newer].map(trimRevision), 'portcullis');
      assert.deepEqual([failed?.revision, failed?.match, serving], [1, undefined, undefined]);
    }
    const others = wantedOf([disarmed, revision(2, 'Serving', { order: 2 })].map(trimRevision), 'portcullis');
    assert.equal(others.serving?.revision, 2);
  });

  it('are kept in memory without unused fields', () => {
    for (const state of ['Validated', 'Staged', 'Serving'] as const) {
      assert.deepEqual(trimRevision(revision(1, state)).spec.snapshot, { module: 'm', failurePolicy: 'Ignore' });
    }
    for (const state of [undefined, 'Candidate', 'Failed'] as const) {
      const { spec, metadata } = trimRevision(revision(1, state));
      assert.deepEqual(spec.snapshot, { failurePolicy: 'Ignore' });
      assert.deepEqual(metadata, { name: 'kw.cap.p-1', namespace: 'portcullis', uid: 'uid-1', resourceVersion: '' });
    }
  });

  it('have match rules, also when they failed', () => {
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
    const spec = {
      module: 'm',
      settings: { long: 'text' },
      mutating: true,
      rules,
      failurePolicy: 'Ignore',
      timeoutSeconds: 3,
      matchConditions: [{ name: 'c', expression: 'true' }],
      allowInsideAdmissionControllerNamespace: true,
    };
    for (const state of ['Serving', 'Staged', 'Failed'] as const) {
      const one = revision(1, state);
      const kept = trimRevision({ ...one, spec: { ...one.spec, snapshot: spec } });
      const { serving, staged, failed } = wantedOf([kept], 'product');
      const match = (serving ?? staged[0] ?? failed)?.match;
      assert.equal(match?.bucket, 'mutating.ignore.equivalent.cluster.v1', state);
      assert.deepEqual(match.rules, [{ ...rules[0], scope: '*' }]);
      assert.deepEqual([match.timeoutSeconds, match.matchConditions], [3, spec.matchConditions]);
      assert.deepEqual(match.namespaceSelector, {}, 'it is for the product, too');
    }
    const own = revision(1, 'Serving');
    const kept = trimRevision({ ...own, spec: { ...own.spec, ownWebhook: true, snapshot: spec } });
    assert.equal(wantedOf([kept], 'product').serving?.match?.bucket, 'mutating.kw.cap.p');
  });

  it('with an invalid snapshot have failurePolicy Fail', () => {
    for (const snapshot of [undefined, null, 7, 'text', [], { failurePolicy: 'Maybe' }]) {
      const broken = { ...revision(1, 'Failed'), spec: { ...revision(1, 'Failed').spec, snapshot: snapshot as never } };
      assert.equal(wantedOf([trimRevision(broken)], 'portcullis').failed?.failurePolicy, 'Fail');
    }
  });

  it('of the history keep only their names', () => {
    for (const state of ['Retired', 'Superseded'] as const) {
      const past = revision(1, state);
      const { metadata, spec, status } = trimRevision(past);
      const { policyId, policyServer } = past.spec;
      assert.deepEqual([spec, status], [{ policyId, policyServer, revision: 1, snapshot: undefined }, { state }]);
      assert.equal(metadata.name, past.metadata.name);
      assert.deepEqual(wantedOf([trimRevision(past)], 'portcullis'), wantedOf([past], 'portcullis'));
    }
  });

  it('of any shape are read without an error', () => {
    const anything = fc.jsonValue();
    const genuine = revision(1, 'Serving');
    // Revisions that are what their names say, and others.
    const spec = fc.oneof(
      fc.record({ snapshot: anything }).map((one) => ({ ...genuine.spec, ...one })),
      fc.record({ policyId: fc.string(), revision: fc.integer(), policy: anything, snapshot: anything }),
      anything,
    );
    const state = fc.constantFrom('Candidate', 'Validated', 'Serving', 'Failed');
    const status = fc.oneof(
      anything,
      fc.record({ state, order: anything, reason: anything, message: anything, modules: fc.array(anything) }),
      fc.record({ state, modules: anything }),
    );
    const metadata = fc.oneof(fc.constant(genuine.metadata), fc.record({ name: fc.string(), uid: fc.string() }));
    fc.assert(
      fc.property(fc.array(fc.record({ metadata, spec, status })), (revisions) => {
        const { serving, staged, failed } = wantedOf(
          revisions.map((one) => trimRevision(one as unknown as PolicyRevision)),
          'portcullis',
        );
        for (const { modules } of [...(serving === undefined ? [] : [serving]), ...staged]) {
          assert.ok(modules?.every(({ digest }) => typeof digest === 'string'));
        }
        assert.equal(typeof (failed?.message ?? ''), 'string');
      }),
    );
  });
});
