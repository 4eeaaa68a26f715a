import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { customResourceDefinition, GOVERNANCE_KINDS, knownKind, type KubernetesObject } from '../resources/index.ts';
import { SharedCaches } from '../runtime/index.ts';
import { registerGovernanceMetrics } from './governance-metrics.ts';
import { until } from './testing/until.ts';

const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const NAMESPACES = knownKind('v1', 'Namespace');
const TEMPLATE = { objectDefinition: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } } };
const SPECS: Readonly<Record<string, object>> = {
  Policy: { disabled: false, 'policy-templates': [TEMPLATE] },
  PolicySet: { policies: [] },
  ConfigurationPolicy: {
    remediationAction: 'inform',
    'object-templates': [{ complianceType: 'musthave', ...TEMPLATE }],
  },
  CertificatePolicy: { remediationAction: 'inform', minimumDuration: '1h' },
};

describe('metrics of governance', () => {
  it('count policies by kind and compliance, and copies by their clusters', async () => {
    await using cluster = await EmbeddedCluster.open();
    for (const kind of GOVERNANCE_KINDS) {
      await cluster.admin.create(DEFINITIONS, customResourceDefinition(kind));
    }
    const objects: readonly (readonly [kind: string, namespace: string, compliant?: string])[] = [
      ['Policy', 'policies', 'NonCompliant'],
      ['Policy', 'local-cluster', 'NonCompliant'],
      ['Policy', 'other-cluster', 'Compliant'],
      ['PolicySet', 'policies'],
      ['ConfigurationPolicy', 'local-cluster', 'Pending'],
      ['ConfigurationPolicy', 'policies', 'Compliant'],
      ['CertificatePolicy', 'local-cluster', 'Compliant'],
    ];
    for (const name of new Set(objects.map(([, namespace]) => namespace))) {
      await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    for (const [name, namespace, compliant] of objects) {
      const type = GOVERNANCE_KINDS.find(({ kind }) => kind === name) ?? assert.fail(name);
      const { group, version, kind } = type;
      const metadata = { namespace, name: 'one' };
      const object: KubernetesObject = { apiVersion: `${group}/${version}`, kind, metadata, spec: SPECS[kind] };
      const created = await cluster.admin.create<KubernetesObject>(type, object);
      if (compliant !== undefined) {
        await cluster.admin.update<KubernetesObject>(
          type,
          { ...created, status: { compliant } },
          { subresource: 'status' },
        );
      }
    }
    const registry = new Registry();
    const targets = { hasCopies: (namespace: string) => namespace.endsWith('-cluster') };
    const caches = new SharedCaches({ cluster: cluster.admin, log: pino({ level: 'silent' }) });
    registerGovernanceMetrics({ registry, caches, targets, namespace: 'local-cluster', others: { running: () => [] } });
    const stop = new AbortController();
    const running = caches.start(stop.signal);
    await caches.ready;
    const lines = async (): Promise<readonly string[]> =>
      (await registry.metrics()).split('\n').filter((line) => line.startsWith('portcullis_governance'));
    await until(async () => (await lines()).length === 7);
    assert.deepEqual((await lines()).toSorted(), [
      'portcullis_governance_copies{target="local-cluster",compliance="NonCompliant"} 1',
      'portcullis_governance_copies{target="other-cluster",compliance="Compliant"} 1',
      'portcullis_governance_other_controllers 0',
      'portcullis_governance_policies{kind="CertificatePolicy",compliance="Compliant"} 1',
      'portcullis_governance_policies{kind="ConfigurationPolicy",compliance="Pending"} 1',
      'portcullis_governance_policies{kind="Policy",compliance="NonCompliant"} 1',
      'portcullis_governance_policies{kind="PolicySet",compliance="Unknown"} 1',
    ]);
    stop.abort();
    await running;
  });
});
