import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { kubernetesKind, type KubernetesObject } from '../../resources/index.ts';
import { EmbeddedCluster } from '../embedded/embedded-cluster.ts';
import { OpenApiDocuments } from '../openapi/openapi.ts';

const POLICIES = kubernetesKind('networking.k8s.io/v1', 'NetworkPolicy') ?? assert.fail('no kind');
const NAMESPACES = kubernetesKind('v1', 'Namespace') ?? assert.fail('no kind');
const KEY = { namespace: 'shop', name: 'closed' };
const POLICY = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: KEY,
  spec: { podSelector: {} },
};
const ACCEPTED = {
  type: 'Accepted',
  status: 'True',
  reason: 'Accepted',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

async function withPolicy(cluster: EmbeddedCluster): Promise<void> {
  await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await cluster.admin.create(POLICIES, { ...POLICY, status: { conditions: [ACCEPTED] } });
}

function apply(cluster: EmbeddedCluster, condition: object, fieldManager = 'test'): Promise<KubernetesObject> {
  const { apiVersion, kind, metadata } = POLICY;
  const body = { apiVersion, kind, metadata, status: { conditions: [{ ...condition }] } };
  const options = { subresource: 'status', fieldManager };
  return cluster.admin.patch(POLICIES, KEY, { type: 'apply', body }, options);
}

describe('the status of NetworkPolicy', () => {
  it('is not served by default', async () => {
    await using cluster = await EmbeddedCluster.open();
    await withPolicy(cluster);
    assert.equal((await cluster.admin.get<KubernetesObject>(POLICIES, KEY))['status'], undefined);
    await assert.rejects(apply(cluster, ACCEPTED), { code: 404 });
  });

  it('is a subresource, with conditions by type, when it is switched on', async () => {
    await using cluster = await EmbeddedCluster.open({ networkPolicyStatus: true });
    await withPolicy(cluster);
    const created = await cluster.admin.get<KubernetesObject>(POLICIES, KEY);
    assert.deepEqual(created['status'] ?? {}, {});
    await apply(cluster, ACCEPTED);
    const partial = { ...ACCEPTED, type: 'PartialFailure' };
    const { metadata, status, spec } = await apply(cluster, partial, 'other');
    assert.deepEqual(status, { conditions: [ACCEPTED, partial] });
    assert.equal(metadata.generation, created.metadata.generation);
    const widened = await cluster.admin.update<KubernetesObject>(POLICIES, {
      ...POLICY,
      spec: { ...(spec as object), policyTypes: ['Egress'] },
      status: {},
    });
    assert.deepEqual(widened['status'], status);
  });

  it('rejects conditions that are none', async () => {
    await using cluster = await EmbeddedCluster.open({ networkPolicyStatus: true });
    await withPolicy(cluster);
    await assert.rejects(apply(cluster, { ...ACCEPTED, status: 'Maybe' }), /status\.conditions\[0\]\.status/);
    await assert.rejects(apply(cluster, { type: 'Accepted' }), /status\.conditions\[0\]\.reason/);
  });

  it('is published, so that kubectl accepts it', async () => {
    await using cluster = await EmbeddedCluster.open({ networkPolicyStatus: true });
    const document = new OpenApiDocuments().groupVersion(cluster.definitions(), 'apis/networking.k8s.io/v1');
    assert.match(document?.text ?? '', /networkpolicies\/\{name\}\/status/);
    assert.match(document?.text ?? '', /What the network providers do with the policy/);
  });

  it('is removed from stored policies when it is switched off', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-'));
    try {
      const file = join(folder, 'cluster.sqlite');
      {
        await using cluster = await EmbeddedCluster.open({ file, networkPolicyStatus: true });
        await withPolicy(cluster);
        await apply(cluster, ACCEPTED);
      }
      await using cluster = await EmbeddedCluster.open({ file });
      assert.equal((await cluster.admin.get<KubernetesObject>(POLICIES, KEY))['status'], undefined);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
