import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { ADMIN_USER, EmbeddedCluster } from '../../cluster/index.ts';
import { type JsonObject, type KubernetesObject, kubernetesKind } from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { until } from '../testing/until.ts';
import { ReachedServices } from './reached-services.ts';

const NAMESPACE = 'portcullis';

function slice(name: string, service: string, ...ready: readonly (boolean | undefined)[]): KubernetesObject {
  const endpoints = ready.map((is, index) => ({
    addresses: [`10.0.0.${index + 1}`],
    ...(is === undefined ? {} : { conditions: { ready: is } }),
  }));
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: NAMESPACE, labels: { 'kubernetes.io/service-name': service } },
    ...({ addressType: 'IPv4', endpoints } as JsonObject),
  };
}

it('a Service is reached some time after an endpoint of it is ready, and no more when it has no endpoints at all', async () => {
  await using cleanup = new AsyncDisposableStack();
  const embedded = await EmbeddedCluster.open();
  cleanup.defer(() => embedded.close());
  const cluster = embedded.as(ADMIN_USER);
  const type = kubernetesKind('discovery.k8s.io/v1', 'EndpointSlice') ?? assert.fail('no such kind');
  await cluster.create(kubernetesKind('v1', 'Namespace') ?? assert.fail('no such kind'), {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: NAMESPACE },
  });
  const caches = new SharedCaches({ cluster, log: pino({ level: 'silent' }) });
  const spreadMs = 40;
  const services = new ReachedServices({ caches, namespace: NAMESPACE, spreadMs });
  let told = 0;
  services.subscribe(() => (told += 1));
  const stop = new AbortController();
  const running = caches.start(stop.signal);
  cleanup.defer(async () => {
    stop.abort();
    await running;
  });
  await caches.ready;

  await cluster.create(type, slice('web-1', 'web', false));
  await cluster.create(type, slice('silent-1', 'silent', undefined));
  const since = performance.now();
  await until(() => told === 1);
  assert.ok(performance.now() - since >= spreadMs - 1, 'nodes have time to hear of it');
  assert.equal(services.isReached('silent'), true, 'an endpoint of which nothing is said is ready');
  assert.equal(services.isReached('web'), false);

  await cluster.create(type, slice('web-2', 'web', false, true));
  await until(() => services.isReached('web'));
  assert.equal(told, 2);

  await cluster.delete(type, { namespace: NAMESPACE, name: 'web-2' });
  await sleep(2 * spreadMs);
  assert.equal(services.isReached('web'), true, 'its endpoints are not ready for a moment');
  await cluster.delete(type, { namespace: NAMESPACE, name: 'web-1' });
  await until(() => !services.isReached('web'));
});
