// Webhook configurations of policies on a real API server: it takes them, and keeps every field as it was written, so that
// none is written again while nothing changes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';

import {
  corrected,
  webhookConfiguration,
  type WebhookConfiguration,
} from '../../src/lifecycle/webhook-configuration.ts';
import {
  type AdmissionPolicyObject,
  keyOf,
  kubernetesKind,
  type JsonObject,
  type ResourceType,
} from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';

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

  function typeOf({ apiVersion, kind }: WebhookConfiguration): ResourceType<WebhookConfiguration> {
    const type = kubernetesKind(apiVersion, kind);
    assert.ok(type);
    return type;
  }

  for (const object of [
    policy('plain', {}),
    policy('everything', ALL),
    policy('mutating', { mutating: true }),
    policy('mutating-everything', { ...ALL, mutating: true }),
    policy('own', {}, 'shop'),
  ]) {
    it(`of ${object.metadata.name}: kept as they are, and put right`, async () => {
      const wanted = webhookConfiguration(object, target);
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
});
