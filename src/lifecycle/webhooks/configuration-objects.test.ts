import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ObjectCache } from '../../runtime/index.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from './webhook-kinds.ts';
import { ConfigurationObjects } from './configuration-objects.ts';
import type { WebhookConfiguration } from './webhook-object.ts';

test('ConfigurationObjects does not remove a configuration that another leader has written since', async () => {
  const { admin: cluster } = await EmbeddedCluster.open();
  const { signal } = new AbortController();
  const cacheOf = (type: typeof VALIDATING_WEBHOOKS): ObjectCache<WebhookConfiguration> =>
    new ObjectCache({ cluster, type, log: pino({ level: 'silent' }) });
  const [validating, mutating] = [cacheOf(VALIDATING_WEBHOOKS), cacheOf(MUTATING_WEBHOOKS)];
  const objects = new ConfigurationObjects({ cluster, validating, mutating, exemptNamespaces: [] });
  const { apiVersion, kind } = { apiVersion: 'admissionregistration.k8s.io/v1', kind: VALIDATING_WEBHOOKS.kind };
  const made: WebhookConfiguration = { apiVersion, kind, metadata: { name: 'portcullis-default' } };
  const seen = await cluster.create(VALIDATING_WEBHOOKS, made);
  const labels = { by: 'another' };
  const written = await cluster.update(VALIDATING_WEBHOOKS, { ...seen, metadata: { ...seen.metadata, labels } });
  await assert.rejects(objects.remove(seen, signal), { name: 'ApiError', code: 409 });
  const key = { name: 'portcullis-default' };
  assert.deepEqual((await cluster.get(VALIDATING_WEBHOOKS, key)).metadata.labels, labels);
  await objects.remove(written, signal);
  await objects.remove(written, signal);
  await assert.rejects(cluster.get(VALIDATING_WEBHOOKS, key), { code: 404 });
});
