// Webhook configurations of policies on a real API server: it takes them, and keeps every field as it was written, so that
// none is written again while nothing changes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../../src/lifecycle/policy-kinds.ts';
import { PolicyWebhooks } from '../../src/lifecycle/policy-webhooks.ts';
import {
  corrected,
  webhookConfiguration,
  type WebhookConfiguration,
} from '../../src/lifecycle/webhook-configuration.ts';
import {
  type AdmissionPolicyObject,
  keyOf,
  type KubernetesObject,
  kubernetesKind,
  type JsonObject,
  type ResourceType,
} from '../../src/resources/index.ts';
import { ObjectCache } from '../../src/runtime/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const RULE = { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['CREATE'] };

function policy(name: string, spec: object, namespace?: string): AdmissionPolicyObject {
  const always = { module: 'x', mutating: false, rules: [RULE], timeoutSeconds: 10 };
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec: { ...always, ...spec },
  } as unknown as AdmissionPolicyObject;
}

const ALL = {
  failurePolicy: 'Ignore',
  matchPolicy: 'Exact',
  matchConditions: [{ name: 'named', expression: "object.metadata.name != ''" }],
  objectSelector: { matchLabels: { a: 'b' } },
  namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['b', 'c'] }] },
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: 7,
};

describe('webhook configurations of policies on a real API server', { skip: skipWithoutCluster() }, () => {
  let server: Cluster;
  let cluster: KubernetesCluster;
  let target: Parameters<typeof webhookConfiguration>[1];

  before(async () => {
    server = await startCluster();
    const ca = readFileSync(server.caFile, 'utf8');
    target = { url: 'https://localhost:8443', ca };
    cluster = new KubernetesCluster({ server: server.url, ca, credentials: tokenCredentials(server.adminToken) });
  });
  after(async () => {
    cluster?.close();
    await server?.[Symbol.asyncDispose]();
  });

  function builtin<T extends KubernetesObject & { spec?: unknown }>(apiVersion: string, kind: string): ResourceType<T> {
    const type = kubernetesKind(apiVersion, kind);
    assert.ok(type);
    return type as unknown as ResourceType<T>;
  }

  function typeOf({ apiVersion, kind }: WebhookConfiguration): ResourceType<WebhookConfiguration> {
    return builtin(apiVersion, kind);
  }

  for (const object of [
    policy('plain', {}),
    policy('everything', ALL),
    policy('mutating', { mutating: true }),
    policy('mutating-everything', { ...ALL, mutating: true }),
    policy('own', {}, 'shop'),
    policy('wild', { rules: [{ ...RULE, apiGroups: ['*'], resources: ['*/*'] }] }),
  ]) {
    it(`of ${object.metadata.name}: kept as they are, and put right`, async () => {
      const wanted = webhookConfiguration(object, target, 'portcullis');
      const type = typeOf(wanted);
      const options = { fieldManager: 'portcullis-controller' };
      const body = wanted as unknown as JsonObject;
      const made = await cluster.patch(type, keyOf(wanted), { type: 'apply', body, force: true }, options);
      assert.equal(corrected(made, wanted), undefined);

      // As an editor of somebody does it, who then owns the fields.
      const edit = {
        metadata: { labels: { theirs: 'too' } },
        webhooks: [
          { ...wanted.webhooks?.[0], objectSelector: { matchLabels: { only: 'these' } }, matchConditions: null },
          { ...wanted.webhooks?.[0], name: 'another.example.com' },
        ],
      };
      const edited = await cluster.patch(type, keyOf(wanted), { type: 'merge', body: edit as unknown as JsonObject });
      const change = corrected(edited, wanted);
      assert.ok(change);
      const mended = await cluster.update(type, change, options);
      assert.equal(corrected(mended, wanted), undefined);
      assert.equal(mended.metadata.labels?.['theirs'], 'too');
      const again = await cluster.update(type, mended, options);
      assert.equal(again.metadata.resourceVersion, mended.metadata.resourceVersion);
    });
  }

  it('is left alone where the server leaves out what is empty', async () => {
    const log = pino({ level: 'silent' });
    const caches = [VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS].map((type) => new ObjectCache({ cluster, type, log }));
    const [validating, mutating] = caches;
    assert.ok(validating && mutating);
    const stop = new AbortController();
    const running = caches.map((cache) => cache.start(stop.signal));
    await Promise.all(caches.map(({ synced }) => synced));
    const webhooks = new PolicyWebhooks({
      cluster,
      validating,
      mutating,
      target: () => target,
      namespace: 'portcullis',
    });
    const object = policy('empty', {
      objectSelector: { matchLabels: {}, matchExpressions: [{ key: 'a', operator: 'Exists', values: [] }] },
    });
    try {
      const writes: boolean[] = [];
      for (let time = 0; time < 4; time += 1) {
        writes.push(await webhooks.enforce(object, object.spec, stop.signal));
      }
      assert.deepEqual(writes.slice(2), [false, false]);
    } finally {
      stop.abort();
      await Promise.all(running);
    }
  });

  it('leaves the way open for whoever mends what rejects everything', async () => {
    // Nobody listens there, and failurePolicy is Fail.
    const nobody = { url: 'https://127.0.0.1:1', ca: target.ca };
    const wild = policy('lock', {
      rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }],
    });
    const configuration = webhookConfiguration(wild, nobody, 'portcullis');
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'portcullis' } };
    await cluster.create(builtin('v1', 'Namespace'), namespace);
    await cluster.create(typeOf(configuration), configuration);
    try {
      const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec: {} };
      const create = async (name: string): Promise<unknown> =>
        await cluster.create(builtin('coordination.k8s.io/v1', 'Lease'), {
          ...lease,
          metadata: { name, namespace: name },
        });
      await eventually(async () => assert.rejects(create('default'), /failed calling webhook/));
      await create('portcullis');
      await cluster.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      });
    } finally {
      await cluster.delete(typeOf(configuration), keyOf(configuration));
    }
  });
});
