import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdmissionPolicyObject, PolicyRevision } from '../resources/index.ts';
import { MonitoredReports } from './replicas/monitored-reports.ts';
import { gatherRolloutView } from './gather-rollout-view.ts';
import { DEFAULT_ROLLOUT_SETTINGS, isDeclared } from '../rollout/index.ts';
import { ABSENT } from './rollout/webhook-state.ts';

const SOURCES = {
  policyServers: { get: () => undefined },
  replicas: { replicas: () => [], monitored: new MonitoredReports() },
  webhooks: { stateOf: () => ABSENT },
  settings: DEFAULT_ROLLOUT_SETTINGS,
  namespace: 'portcullis',
};

function policy(settings: object, generation: number): AdmissionPolicyObject {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'p', uid: 'u', generation },
    spec: { module: 'builtin:cel', mutating: false, rules: [], settings },
  } as unknown as AdmissionPolicyObject;
}

function revision(of: AdmissionPolicyObject): PolicyRevision {
  // As an API server returns it.
  const snapshot: unknown = JSON.parse(JSON.stringify(of.spec));
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: { name: 'kw.cap.p-1', uid: 'r' },
    spec: {
      revision: 1,
      policy: { name: 'p' },
      policyId: 'kw.cap.p',
      policyGeneration: of.metadata.generation,
      snapshot,
    },
  } as PolicyRevision;
}

describe('policyView', () => {
  const isCurrent = (created: AdmissionPolicyObject, now: AdmissionPolicyObject): boolean =>
    isDeclared(gatherRolloutView(SOURCES, now, 'kw.cap.p', [revision(created)], 0));

  it('treats a revision of the current generation as declared, even if its spec reads differently', () => {
    // Go writes -0; JavaScript reads it, and writes 0.
    const negative = policy({ limit: -0 }, 1);
    assert.equal(isCurrent(negative, negative), true);
  });

  it('compares the spec of another generation', () => {
    assert.equal(isCurrent(policy({ limit: 1 }, 1), policy({ limit: 2 }, 2)), false);
    assert.equal(isCurrent(policy({ limit: 1 }, 1), policy({ limit: 1 }, 3)), true);
  });

  it('has counts of monitor mode only from replicas of the PolicyServer, and for revisions that exist', () => {
    const monitored = new MonitoredReports();
    const counted = { since: '2026-01-01T00:00:00.000Z', count: 1, last: [] };
    const report = { name: 'kw.cap.p-1', uid: 'r', policy: 'kw.cap.p', revision: 1, monitored: counted } as const;
    monitored.receive({ name: 'a', policyServer: 'default' }, [{ ...report, state: 'Serving' }]);
    monitored.receive({ name: 'b', policyServer: 'tenants' }, [{ ...report, state: 'Serving' }]);
    monitored.receive({ name: 'c', policyServer: 'default' }, [{ ...report, uid: 'made up', state: 'Serving' }]);
    const sources = { ...SOURCES, replicas: { ...SOURCES.replicas, monitored } };
    const one = policy({}, 1);
    const view = gatherRolloutView(sources, one, 'kw.cap.p', [revision(one)], 0);
    assert.deepEqual(
      view.monitored.map(({ replica }) => replica),
      ['a'],
    );
  });
});
