// Metrics of governance: hub and member each have those of what they do, and together all.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { GovernanceControllers } from '../../src/governance/index.ts';
import { DEFAULT_GOVERNANCE_SETTINGS } from '../../src/governance/settings/index.ts';
import { HubControllers } from '../../src/governance/hub/hub-controllers.ts';
import { MemberControllers } from '../../src/governance/member/member-controllers.ts';
import { GovernanceParts, type GovernancePartsOptions } from '../../src/governance/parts/governance-parts.ts';
import {
  customResourceDefinition,
  GOVERNANCE_KINDS,
  knownKind,
  type KubernetesObject,
} from '../../src/resources/index.ts';
import { SharedCaches } from '../../src/runtime/index.ts';

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
const OBJECTS: readonly (readonly [kind: string, namespace: string, compliant?: string])[] = [
  ['Policy', 'policies', 'NonCompliant'],
  ['Policy', 'local-cluster', 'NonCompliant'],
  ['Policy', 'other-cluster', 'Compliant'],
  ['PolicySet', 'policies'],
  ['ConfigurationPolicy', 'local-cluster', 'Pending'],
  ['ConfigurationPolicy', 'policies', 'Compliant'],
  ['CertificatePolicy', 'local-cluster', 'Compliant'],
];

const ROOTS = [
  'portcullis_governance_policies{kind="Policy",compliance="NonCompliant"} 1',
  'portcullis_governance_policies{kind="PolicySet",compliance="Unknown"} 1',
];
const COPIES = [
  'portcullis_governance_copies{target="local-cluster",compliance="NonCompliant"} 1',
  'portcullis_governance_copies{target="other-cluster",compliance="Compliant"} 1',
];
const TEMPLATES = [
  'portcullis_governance_policies{kind="CertificatePolicy",compliance="Compliant"} 1',
  'portcullis_governance_policies{kind="ConfigurationPolicy",compliance="Pending"} 1',
];

/** The namespaces of two clusters hold copies. */
const targets = {
  of: () => [],
  hasCopies: (namespace: string) => namespace.endsWith('-cluster'),
  subscribe: () => () => undefined,
};
const governed = { namespaces: undefined, exemptNamespaces: [] };
const clusterNamespace = 'local-cluster';

async function withObjects(): Promise<EmbeddedCluster> {
  const cluster = await EmbeddedCluster.open();
  for (const kind of GOVERNANCE_KINDS) {
    await cluster.admin.create(DEFINITIONS, customResourceDefinition(kind));
  }
  for (const name of new Set(OBJECTS.map(([, namespace]) => namespace))) {
    await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  for (const [name, namespace, compliant] of OBJECTS) {
    const type = GOVERNANCE_KINDS.find(({ kind }) => kind === name) ?? assert.fail(name);
    const { group, version, kind } = type;
    const metadata = { namespace, name: 'one' };
    const object: KubernetesObject = { apiVersion: `${group}/${version}`, kind, metadata, spec: SPECS[kind] };
    const created = await cluster.admin.create<KubernetesObject>(type, object);
    if (compliant !== undefined) {
      const reported = { ...created, status: { compliant } };
      await cluster.admin.update<KubernetesObject>(type, reported, { subresource: 'status' });
    }
  }
  return cluster;
}

/** Expects the metrics of controllers whose caches run, as in each replica, and no others. */
async function show(
  assemble: (options: GovernancePartsOptions) => unknown,
  expected: readonly string[],
): Promise<void> {
  await using cluster = await withObjects();
  const log = pino({ level: 'silent' });
  const caches = new SharedCaches({ cluster: cluster.admin, log });
  const registry = new Registry();
  const events = { event: () => undefined };
  assemble({ cluster: cluster.admin, governed: cluster.admin, caches, events, log, registry });
  const stop = new AbortController();
  const running = caches.start(stop.signal);
  const lines = async (): Promise<readonly string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('portcullis_governance'));
  try {
    await caches.ready;
    assert.deepEqual((await lines()).toSorted(), expected.toSorted());
  } finally {
    stop.abort();
    await running;
  }
}

describe('metrics of governance', () => {
  it('of a hub alone count Policies, PolicySets, and copies by their clusters', async () => {
    await show(
      (options) => {
        const parts = new GovernanceParts(options);
        return new HubControllers({ parts, targets, governed, clusterNamespace });
      },
      [...ROOTS, ...COPIES],
    );
  });

  it('of a member alone count its templates', async () => {
    await show((options) => {
      const parts = new GovernanceParts(options);
      return new MemberControllers({ parts, namespace: clusterNamespace });
    }, TEMPLATES);
  });

  it('of a cluster that is its own hub count all', async () => {
    // The namespace of the other cluster is one like any other there.
    const [copy = ''] = COPIES;
    const root = 'portcullis_governance_policies{kind="Policy",compliance="Compliant"} 1';
    await show(
      (options) => new GovernanceControllers({ ...options, settings: DEFAULT_GOVERNANCE_SETTINGS }),
      [...ROOTS, root, copy, ...TEMPLATES],
    );
  });
});
