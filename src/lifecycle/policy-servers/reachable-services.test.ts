import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { ADMIN_USER, EmbeddedCluster } from '../../apiserver/index.ts';
import { knownKind } from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { until } from '../testing/until.ts';
import { ReachableServices } from './reachable-services.ts';

it('a Service is reachable some time after its Deployment has an available pod, until the Deployment is deleted', async () => {
  await using cleanup = new AsyncDisposableStack();
  const embedded = await EmbeddedCluster.open();
  cleanup.defer(() => embedded.close());
  const cluster = embedded.as(ADMIN_USER);
  const [deployments, namespace] = [knownKind('apps/v1', 'Deployment'), 'portcullis'];
  const metadata = { name: 'web', namespace };
  const labels = { app: 'web' };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'web' }] } },
    },
  };
  await cluster.create(knownKind('v1', 'Namespace'), {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  });
  const caches = new SharedCaches({ cluster, log: pino({ level: 'silent' }) });
  const spreadMs = 40;
  const services = new ReachableServices({ caches, namespace, spreadMs });
  let changes = 0;
  services.subscribe(() => (changes += 1));
  const stop = new AbortController();
  const running = caches.start(stop.signal);
  cleanup.defer(async () => {
    stop.abort();
    await running;
  });
  await caches.ready;
  const available = async (replicas: number): Promise<void> => {
    const body = { status: { replicas: 1, readyReplicas: replicas, availableReplicas: replicas } };
    await cluster.patch(deployments, metadata, { type: 'merge', body }, { subresource: 'status' });
  };

  assert.deepEqual([services.isDeployed('web'), services.isReachable('web')], [false, false]);
  await cluster.create(deployments, deployment);
  await until(() => services.isDeployed('web'));
  await available(0);
  await sleep(2 * spreadMs);
  assert.equal(services.isReachable('web'), false);

  const since = performance.now();
  await available(1);
  await until(() => changes === 1);
  assert.ok(performance.now() - since >= spreadMs - 1, 'nodes have time to hear of it');
  assert.equal(services.isReachable('web'), true);

  await available(0);
  await sleep(2 * spreadMs);
  assert.equal(services.isReachable('web'), true, 'its pods are not available for a moment');
  await cluster.delete(deployments, metadata);
  await cluster.create(deployments, deployment);
  await until(() => !services.isReachable('web'));
});
