// A rotation of the CA and renewals of certificates under load, with real sockets and files.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { pino } from 'pino';
import {
  AUTHORITY_SECRET,
  CertificateController,
  CONTROLLER_CONTROL_SECRET,
  CONTROLLER_WEBHOOK_SECRET,
  ensureCertificates,
  OwnKindsWebhook,
  policyServerSecrets,
  SecretFiles,
} from '../../src/lifecycle/index.ts';
import { ROTATE_ANNOTATION } from '../../src/lifecycle/certificates/authority-secret.ts';
import { SECRETS } from '../../src/lifecycle/certificates/secret.ts';
import { SecretsScene } from '../../src/lifecycle/certificates/testing/secrets-scene.ts';
import { VALIDATING_WEBHOOKS } from '../../src/lifecycle/webhooks/webhook-kinds.ts';
import { ControlClient } from '../../src/control/control-client.ts';
import { type Runnable, SharedCaches } from '../../src/runtime/index.ts';
import { createAdmissionServer, listen, type TlsFiles } from '../../src/https/index.ts';

const HOST = '127.0.0.1';
/** Much longer than the time until a changed Secret is read from files here, some 50 ms. Milliseconds. */
const OVERLAP_MS = 2_000;
const settings = { authorityLifetimeMs: 600_000, leafLifetimeMs: 9_000, overlapMs: OVERLAP_MS };
/** Delay between two calls of a client: six clients make some 200 calls a second. Milliseconds. */
const PACE_MS = 10;

/** Calls on a new connection. @returns the fingerprint of the server's certificate */
function call(port: number, servername: string, ca: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const sent = request({ host: HOST, port, servername, ca, agent: false, path: '/' }, (answer) => {
    const { fingerprint256 } = (answer.socket as TLSSocket).getPeerCertificate();
    answer.resume().once('end', () => resolve(fingerprint256));
  });
  sent.once('error', reject).end();
  return promise;
}

describe('a rotation under load', () => {
  it('fails no connection, and brings new certificates to every server', { timeout: 120_000 }, async () => {
    await using scene = await SecretsScene.open();
    await using cleanup = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
    cleanup.defer(() => rmSync(folder, { recursive: true, force: true }));
    const { cluster, namespace } = scene;
    const log = pino({ level: 'silent' });
    const stop = new AbortController();
    const running: Promise<void>[] = [];
    cleanup.defer(async () => {
      stop.abort();
      await Promise.all(running);
    });
    const start = async (...runnables: readonly Runnable[]): Promise<void> => {
      running.push(...runnables.map((runnable) => runnable.start(stop.signal)));
      await Promise.all(runnables.map(async ({ ready }) => ready));
    };
    const events: string[] = [];
    const controllerOptions = { cluster, namespace, settings, log };
    await ensureCertificates(controllerOptions, stop.signal);
    const caches = new SharedCaches({ cluster, log });
    const certificates = new CertificateController({
      ...controllerOptions,
      caches,
      mode: 'own',
      policyServers: { names: () => ['default'], subscribe: () => () => undefined },
      events: { event: (_object, _type, reason) => void events.push(reason) },
    });
    const { webhook, control } = policyServerSecrets('default');
    const secrets = [CONTROLLER_WEBHOOK_SECRET, CONTROLLER_CONTROL_SECRET, webhook, control];
    const files = secrets.map(
      (secret) => new SecretFiles({ cluster, namespace, secret, folder: join(folder, secret), log }),
    );
    const tls = (secret: string): TlsFiles & { caFile: string } => ({
      certFile: join(folder, secret, 'tls.crt'),
      keyFile: join(folder, secret, 'tls.key'),
      caFile: join(folder, secret, 'ca.crt'),
    });
    const configurations = caches.cache(VALIDATING_WEBHOOKS);
    await start(caches, certificates, ...files);

    const ownKinds = new OwnKindsWebhook({
      cluster,
      caches,
      namespace,
      host: HOST,
      port: 0,
      tls: tls(CONTROLLER_WEBHOOK_SECRET),
      service: { namespace, name: 'portcullis-controller', port: 443 },
      ca: certificates,
      controllerUser: 'controller',
      log,
    });
    await start(ownKinds, ownKinds.registration);
    const serve = async (options: TlsFiles): Promise<number> => {
      const { server, tls: watched } = await createAdmissionServer({
        handler: (_request, response) => response.end(),
        tls: options,
        timeouts: undefined,
        log,
      });
      cleanup.defer(() => {
        watched?.stop();
        server.close();
        server.closeAllConnections();
      });
      await listen(server, 0, HOST);
      return (server.address() as AddressInfo).port;
    };
    const policyServerPort = await serve(tls(webhook));
    const controlPort = await serve({ ...tls(control), clientCaFiles: [tls(control).caFile] });
    const controlClient = new ControlClient(tls(CONTROLLER_CONTROL_SECRET));
    cleanup.defer(() => controlClient.close());

    /** The CA bundle in the configuration of the webhook for our own kinds. */
    const publishedBundle = (): string => {
      const [configuration] = configurations.list();
      const [first] = (configuration?.webhooks ?? []) as { clientConfig: { caBundle: string; service: object } }[];
      assert.deepEqual(first?.clientConfig.service, {
        namespace,
        name: 'portcullis-controller',
        port: 443,
        path: '/validate-own-kinds',
      });
      return Buffer.from(first?.clientConfig.caBundle ?? '', 'base64').toString();
    };
    const ownKindsPort = Number(new URL(await ownKinds.url).port);
    const seen = new Map<string, Set<string>>(secrets.map((secret) => [secret, new Set()]));
    const failures: string[] = [];
    let calls = 0;
    const load = async (name: string, once: () => Promise<string | undefined>): Promise<void> => {
      while (!stop.signal.aborted) {
        try {
          const fingerprint = await once();
          calls += 1;
          if (fingerprint !== undefined) {
            seen.get(name)?.add(fingerprint);
          }
        } catch (error) {
          failures.push(`${name}, ${events.join()}: ${String(error)}`);
        }
        await sleep(PACE_MS);
      }
    };
    const clients = (): readonly Promise<void>[] => [
      load(CONTROLLER_WEBHOOK_SECRET, () =>
        call(ownKindsPort, 'portcullis-controller.portcullis.svc', publishedBundle()),
      ),
      load(webhook, () => call(policyServerPort, 'policy-server-default.portcullis.svc', publishedBundle())),
      load(control, async () => {
        const answer = await controlClient.open({ host: HOST, port: controlPort }, '/', AbortSignal.timeout(20_000));
        const { fingerprint256 } = (answer.socket as TLSSocket).getPeerCertificate();
        answer.destroy();
        return fingerprint256;
      }),
    ];
    running.push(...clients(), ...clients());

    const until = async (holds: () => boolean): Promise<void> => {
      while (!holds() && failures.length === 0) {
        await sleep(20);
      }
    };
    const annotations = { [ROTATE_ANNOTATION]: 'now' };
    const key = { namespace, name: AUTHORITY_SECRET };
    await cluster.patch(SECRETS, key, { type: 'merge', body: { metadata: { annotations } } });
    await until(() => events.includes('RotationCompleted'));
    // The first certificate, one of the next CA, and its renewal.
    const servers = [CONTROLLER_WEBHOOK_SECRET, webhook, control];
    await until(() => servers.every((secret) => (seen.get(secret)?.size ?? 0) >= 3));
    assert.deepEqual(failures, []);
    assert.deepEqual(events, ['RotationStarted', 'AuthorityChanged', 'RotationCompleted']);
    assert.ok(calls > 100, `expected hundreds of calls, got ${calls}`);
  });
});
