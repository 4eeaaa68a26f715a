import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../../apiserver/index.ts';
import {
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  POLICIES,
  POLICY_SETS,
  type Policy,
} from '../../../resources/index.ts';
import { SharedCaches } from '../../../runtime/index.ts';
import { DEFAULT_GOVERNANCE_SETTINGS } from '../../settings/governance-settings.ts';
import { OwnCluster } from '../../targets/own-cluster.ts';
import { until } from '../../testing/until.ts';
import type { Postponed, ResolvedCopy } from './hub-templates.ts';
import { CopyPlans } from './copy-plans.ts';
import { CopyReconciler } from './copy-reconciler.ts';
import { CopyRecords } from './copy-records.ts';
import { DECLARED_POLICIES } from '../revisions/served-policies.ts';
import { RootReconciler } from './root-reconciler.ts';

const KEY = { namespace: 'policies', name: 'slow' };
const COPY = { namespace: 'local-cluster', name: 'policies.slow' };
const ROOT: KubernetesObject & Pick<Policy, 'spec'> = {
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'Policy',
  metadata: KEY,
  spec: { disabled: false, remediationAction: 'inform', 'policy-templates': [] },
};

/** A copy that differs from the unresolved one. */
const resolved = (copy: Policy): Policy => ({
  ...copy,
  metadata: { ...copy.metadata, labels: { ...copy.metadata.labels, resolved: 'yes' } },
});

describe('a Policy whose templates of the hub are postponed', () => {
  it('reports the status of its copy until it is edited', async () => {
    await using cluster = await EmbeddedCluster.open();
    const { admin } = cluster;
    for (const own of [POLICIES, POLICY_SETS]) {
      await admin.create(
        knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
        customResourceDefinition(own),
      );
    }
    for (const name of ['policies', 'local-cluster']) {
      await admin.create(knownKind('v1', 'Namespace'), { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    await admin.create(POLICIES, ROOT);
    const caches = new SharedCaches({ cluster: admin, log: pino({ level: 'silent' }) });
    const [policies, policySets] = [caches.cache(POLICIES), caches.cache(POLICY_SETS)];
    const stop = new AbortController();
    const running = caches.start(stop.signal);
    await using _ = {
      [Symbol.asyncDispose]: async () => {
        stop.abort();
        await running;
      },
    };
    await caches.ready;

    let isPostponed = false;
    const targets = new OwnCluster('local-cluster', false);
    const plans = new CopyPlans({ governed: DEFAULT_GOVERNANCE_SETTINGS, targets, policySets });
    const records = new CopyRecords(() => undefined);
    const shared = { cluster: admin, targets, plans, served: DECLARED_POLICIES, policies, records };
    const roots = new RootReconciler({ ...shared, copiesOf: () => policies.list('local-cluster') });
    const copies = new CopyReconciler({
      ...shared,
      namespaces: { ensure: async () => undefined },
      hubTemplates: {
        forget: () => undefined,
        resolve: async (_root: Policy, copy: Policy): Promise<ResolvedCopy | Postponed> =>
          isPostponed ? { waitMs: 7_000 } : { copy: resolved(copy), errors: [], retryAfterMs: undefined },
      },
      events: { event: () => undefined },
    });
    const reconcile = async () => {
      const result = await copies.reconcile(COPY, stop.signal, { failures: 0, stopped: stop.signal });
      await roots.reconcile(KEY, stop.signal);
      return result;
    };

    await reconcile();
    const copy = await admin.get(POLICIES, COPY);
    await admin.update(
      POLICIES,
      { ...copy, status: { compliant: 'NonCompliant', observedGeneration: copy.metadata.generation ?? 0 } },
      { subresource: 'status' },
    );
    await until(() => policies.get(COPY)?.status?.compliant === 'NonCompliant');
    isPostponed = true;
    assert.equal((await reconcile()).requeueAfterMs, 7_000);
    assert.equal((await admin.get(POLICIES, KEY)).status?.compliant, 'NonCompliant');

    const root = await admin.get(POLICIES, KEY);
    await admin.update(POLICIES, { ...root, spec: { ...root.spec, remediationAction: 'enforce' } });
    await until(() => policies.get(KEY)?.metadata.generation === 2);
    await reconcile();
    assert.equal((await admin.get(POLICIES, KEY)).status?.compliant, undefined);
  });
});
