import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { ADMIN_USER, EmbeddedCluster } from '../../apiserver/index.ts';
import { unlessGone } from '../../cluster/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { ensureLocalCertificates } from '../../control/certificates/index.ts';
import { until } from '../certificates/testing/secrets-scene.ts';
import { VALIDATING_WEBHOOKS } from '../webhooks/webhook-kinds.ts';
import { OWN_KINDS_CONFIGURATION } from './own-kinds-configuration.ts';
import { OwnKindsWebhook } from './own-kinds-webhook.ts';

it('OwnKindsRegistration waits until its Service is reached, and follows changes of the CA bundle', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'own-kinds-registration-'));
  cleanup.defer(() => rmSync(folder, { recursive: true, force: true }));
  const embedded = await EmbeddedCluster.open();
  cleanup.defer(() => embedded.close());
  const cluster = embedded.as(ADMIN_USER);
  const log = pino({ level: 'silent' });
  const caches = new SharedCaches({ cluster, log });
  let bundle: string | undefined;
  const listeners = new Set<() => void>();
  let isReachable = false;
  const notify = (): void => listeners.forEach((listener) => listener());
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const webhook = new OwnKindsWebhook({
    cluster,
    caches,
    namespace: 'portcullis',
    host: '127.0.0.1',
    port: 0,
    tls: await ensureLocalCertificates(folder),
    service: { namespace: 'portcullis', name: 'portcullis-controller', port: 443 },
    reached: { isReachable: (service) => service === 'portcullis-controller' && isReachable, subscribe },
    ca: { bundle: () => bundle, subscribe },
    controllerUser: 'controller',
    log,
  });
  const stop = new AbortController();
  const running = [webhook.registration, caches, webhook].map((runnable) => runnable.start(stop.signal));
  cleanup.defer(async () => {
    stop.abort();
    await Promise.all(running);
  });
  const clientConfig = async (): Promise<unknown> => {
    const configuration = await unlessGone(cluster.get(VALIDATING_WEBHOOKS, { name: OWN_KINDS_CONFIGURATION }));
    return (configuration?.webhooks as { clientConfig: unknown }[] | undefined)?.[0]?.clientConfig;
  };
  await webhook.ready;
  assert.equal(await clientConfig(), undefined, 'nothing is written without a CA bundle');
  bundle = 'one';
  notify();
  await sleep(100);
  assert.equal(await clientConfig(), undefined, 'nothing is written while the Service is not reached');
  for (const pem of ['one', 'one and two']) {
    // An existing configuration is updated even when the Service is not reached any more.
    isReachable = pem === 'one';
    bundle = pem;
    notify();
    const service = { namespace: 'portcullis', name: 'portcullis-controller', port: 443, path: '/validate-own-kinds' };
    const wanted = { service, caBundle: Buffer.from(pem).toString('base64') };
    await until(async () => isDeepStrictEqual(await clientConfig(), wanted));
  }
  await webhook.registration.ready;
});
