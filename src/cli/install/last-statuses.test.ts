import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  type Condition,
  CONFIGURATION_POLICIES,
  customResourceDefinition,
  findCondition,
  GOVERNANCE_KINDS,
  type JsonObject,
  type KubernetesObject,
  knownKind,
  POLICIES,
  POLICY_KINDS,
  POLICY_SERVERS,
  type ResourceType,
} from '../../resources/index.ts';
import { valueAt } from '../../values/index.ts';
import { writeLastStatuses } from './last-statuses.ts';

const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const SINCE = '2026-01-01T00:00:00Z';
const OPTIONS = { isDryRun: false, isGovernedElsewhere: false };

const condition = (type: string, status = 'True'): Condition =>
  ({ type, status, reason: 'Serving', message: '', lastTransitionTime: SINCE, observedGeneration: 1 }) as Condition;

/** What an auditor wrote. */
const AUDIT = {
  summary: '0',
  state: 'Complete',
  reason: 'Scanned',
  message: '',
  observedGeneration: 1,
  counts: { matched: 1, passed: 1, failed: 0, wouldChange: 0, unjudged: 0 },
  kinds: [],
};

/** Objects with the statuses of a controller that ran. */
const OBJECTS: readonly (readonly [ResourceType, JsonObject, JsonObject])[] = [
  [
    CLUSTER_ADMISSION_POLICIES,
    {
      module: 'builtin:cel',
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
    },
    {
      phase: 'Active',
      policyStatus: 'active',
      mode: 'protect',
      observedGeneration: 1,
      desiredRevision: 2,
      servingRevision: 2,
      readyReplicas: 2,
      totalReplicas: 2,
      audit: AUDIT,
      conditions: ['PolicyActive', 'Enforced', 'UpToDate', 'ResourcesServed', 'Ready'].map((type) => condition(type)),
    } as unknown as JsonObject,
  ],
  [
    POLICY_SERVERS,
    { image: 'portcullis', replicas: 2 },
    {
      readyReplicas: 2,
      totalReplicas: 2,
      observedGeneration: 1,
      conditions: [condition('Ready')],
    } as unknown as JsonObject,
  ],
  [
    POLICIES,
    { disabled: false, 'policy-templates': [] },
    {
      compliant: 'Compliant',
      status: [{ clustername: 'local-cluster', compliant: 'Compliant' }],
      details: [{ compliant: 'Compliant', history: [{ message: 'Compliant; fine' }] }],
      conditions: [condition('Ready')],
    } as unknown as JsonObject,
  ],
  [
    CONFIGURATION_POLICIES,
    { remediationAction: 'inform', 'object-templates': [] },
    {
      compliant: 'NonCompliant',
      relatedObjects: [{ compliant: 'NonCompliant' }],
      conditions: [condition('Ready')],
    } as unknown as JsonObject,
  ],
];

describe('the last statuses', () => {
  let cluster: EmbeddedCluster;
  const keyOf = ({ namespaced }: ResourceType, name = 'one'): { namespace?: string; name: string } =>
    namespaced ? { namespace: 'default', name } : { name };
  const create = async (type: ResourceType, spec: JsonObject, name = 'one'): Promise<KubernetesObject> =>
    await cluster.admin.create(type, {
      apiVersion: `${type.group}/${type.version}`,
      kind: type.kind,
      metadata: keyOf(type, name),
      spec,
    });
  const write = async (type: ResourceType, status: JsonObject, name = 'one'): Promise<void> => {
    const patch = { type: 'merge', body: { status } } as const;
    await cluster.admin.patch(type, keyOf(type, name), patch, { subresource: 'status' });
  };
  const read = async (type: ResourceType, name = 'one'): Promise<KubernetesObject & { status: JsonObject }> =>
    (await cluster.admin.get(type, keyOf(type, name))) as KubernetesObject & { status: JsonObject };
  const shown = ({ status }: { status: JsonObject }, type: string): string => {
    const found = findCondition(status['conditions'] as unknown as Condition[], type);
    return found === undefined ? 'none' : `${found.status} ${found.reason}`;
  };
  /** A user who may read everything, and change nothing. */
  const reader = (): Cluster => cluster.as({ username: 'reader', groups: ['readers', 'system:authenticated'] });

  before(async () => {
    cluster = await EmbeddedCluster.open({});
    for (const kind of [...POLICY_KINDS, POLICY_SERVERS, ...GOVERNANCE_KINDS]) {
      await cluster.admin.create(DEFINITIONS, customResourceDefinition(kind));
    }
    for (const [type, spec, status] of OBJECTS) {
      await create(type, spec);
      await write(type, status);
    }
    // One that Kubewarden's controller maintains, and one that no controller has seen.
    const [, spec] = OBJECTS[0] ?? assert.fail();
    await create(CLUSTER_ADMISSION_POLICIES, spec, 'kubewardens');
    await write(
      CLUSTER_ADMISSION_POLICIES,
      { policyStatus: 'active', conditions: [condition('PolicyActive')], audit: AUDIT } as never,
      'kubewardens',
    );
    await create(CLUSTER_ADMISSION_POLICIES, spec, 'new');
  });

  it('are not written in a dry run, nor without the right, which is named once for each kind', async () => {
    const versions = async (): Promise<readonly unknown[]> =>
      await Promise.all(OBJECTS.map(async ([type]) => (await read(type)).metadata.resourceVersion));
    const found = await versions();
    assert.deepEqual(await writeLastStatuses(cluster.admin, { ...OPTIONS, isDryRun: true }), {
      written: 5,
      problems: [],
    });
    const { written, problems } = await writeLastStatuses(reader(), OPTIONS);
    assert.equal(written, 0);
    assert.equal(problems.length, POLICY_KINDS.length + 1 + GOVERNANCE_KINDS.length);
    assert.match(problems[0] ?? '', /clusteradmissionpolicies\.policies\.kubewarden\.io: you may not list them/);
    assert.deepEqual(await versions(), found);
  });

  it('leave governance policies of another product as they are', async () => {
    const { written } = await writeLastStatuses(cluster.admin, {
      ...OPTIONS,
      isDryRun: true,
      isGovernedElsewhere: true,
    });
    assert.equal(written, 3);
  });

  it('say that nothing is enforced, and that compliance is not known', async () => {
    assert.deepEqual(await writeLastStatuses(cluster.admin, OPTIONS), { written: 5, problems: [] });
    const policy = await read(CLUSTER_ADMISSION_POLICIES);
    const { phase, reason, policyStatus, mode, servingRevision, readyReplicas, desiredRevision, audit } = policy.status;
    assert.deepEqual(
      ['state', 'summary', 'reason'].map((field) => valueAt(audit, field)),
      ['Unknown', 'Unknown', 'Uninstalled'],
      'what an auditor knew is not known any more',
    );
    assert.deepEqual(
      { phase, reason, policyStatus, mode, servingRevision, readyReplicas, desiredRevision },
      {
        phase: 'Pending',
        reason: 'Uninstalled',
        policyStatus: 'unscheduled',
        mode: 'unknown',
        servingRevision: 0,
        readyReplicas: 0,
        desiredRevision: 2,
      },
    );
    for (const type of ['Enforced', 'PolicyActive', 'UpToDate', 'Ready']) {
      assert.equal(shown(policy, type), 'False Uninstalled', type);
    }
    assert.equal(shown(policy, 'ResourcesServed'), 'True Serving');
    const server = await read(POLICY_SERVERS);
    assert.deepEqual([server.status['readyReplicas'], shown(server, 'Ready')], [0, 'False Uninstalled']);
    for (const type of [POLICIES, CONFIGURATION_POLICIES]) {
      const object = await read(type);
      assert.equal(object.status['compliant'], undefined);
      assert.deepEqual([shown(object, 'Ready'), shown(object, 'Enforced')], ['False Uninstalled', 'False Uninstalled']);
    }
    const parent = await read(POLICIES);
    assert.deepEqual(parent.status['status'], [{ clustername: 'local-cluster' }]);
    assert.deepEqual(parent.status['details'], [{ history: [{ message: 'Compliant; fine' }] }]);
  });

  it('are written once, and never on what Portcullis did not maintain', async () => {
    assert.deepEqual(await writeLastStatuses(cluster.admin, OPTIONS), { written: 0, problems: [] });
    const other = await read(CLUSTER_ADMISSION_POLICIES, 'kubewardens');
    assert.deepEqual(
      [shown(other, 'PolicyActive'), valueAt(other.status, 'audit', 'state')],
      ['True Serving', 'Unknown'],
    );
    assert.equal((await read(CLUSTER_ADMISSION_POLICIES, 'new')).status['phase'], undefined);
  });
});
