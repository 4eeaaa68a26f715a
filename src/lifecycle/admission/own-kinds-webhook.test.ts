import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
  POLICY_REVISIONS,
} from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { ensureLocalCertificates, type LocalCertificates } from '../../control/certificates/index.ts';
import { OWN_KINDS_CONFIGURATION } from './own-kinds-configuration.ts';
import { OwnKindsWebhook } from './own-kinds-webhook.ts';
import { policy, revision } from './testing/own-kinds-objects.ts';

const CONTROLLER = 'system:serviceaccount:portcullis:portcullis-controller';
const POLICIES = CLUSTER_ADMISSION_POLICIES;
const REVISIONS = POLICY_REVISIONS;

const CONFIGURATIONS = knownKind('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration');
/** That of the namespace of the revisions. */
const AUDITOR = 'system:serviceaccount:default:portcullis-auditor';
const KEY = { name: OWN_KINDS_CONFIGURATION };

interface Answer {
  readonly status: number;
  readonly body: string;
}

describe('the webhook for our own kinds', () => {
  let folder: string;
  let certificates: LocalCertificates;
  let cluster: EmbeddedCluster;
  let user: Cluster;
  let controller: Cluster;
  let webhook: OwnKindsWebhook;
  let stop: () => Promise<void>;

  /** Starts the webhook and its registration. */
  async function start(): Promise<void> {
    const log = pino({ level: 'silent' });
    const caches = new SharedCaches({ cluster: controller, log });
    const ca = readFileSync(certificates.caFile, 'utf8');
    const options = { cluster: controller, caches, namespace: 'portcullis', ca, log, controllerUser: CONTROLLER };
    webhook = new OwnKindsWebhook({
      ...options,
      host: '127.0.0.1',
      port: 0,
      tls: certificates,
      apiServers: ['127.0.0.1'],
    });
    const aborting = new AbortController();
    const running = [webhook.registration, caches, webhook].map((runnable) => runnable.start(aborting.signal));
    stop = async () => {
      aborting.abort();
      await Promise.all(running);
    };
    await Promise.all([webhook.ready, webhook.registration.ready]);
  }

  function send(
    body: string | Uint8Array,
    options: { path?: string; method?: string; type?: string } = {},
  ): Promise<Answer> {
    const { path = '/validate-own-kinds?timeout=10s', method = 'POST', type = 'application/json' } = options;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    void webhook.url.then((url) => {
      const sent = httpsRequest(
        `${url}${path}`,
        { method, ca: readFileSync(certificates.caFile), headers: { 'content-type': type }, agent: false },
        (incoming) => {
          let text = '';
          incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body: text }));
        },
      );
      sent.on('error', reject);
      sent.end(body);
    }, reject);
    return promise;
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-own-kinds-'));
    certificates = await ensureLocalCertificates(join(folder, 'pki'));
    cluster = await EmbeddedCluster.open();
    const groups = ['system:masters', 'system:authenticated'];
    user = cluster.as({ username: 'somebody', groups });
    controller = cluster.as({ username: CONTROLLER, groups });
    for (const kind of OWN_KINDS) {
      await user.create(
        knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
        customResourceDefinition(kind),
      );
    }
    await start();
  });
  after(async () => {
    await stop();
    await cluster.close();
    rmSync(folder, { recursive: true });
  });

  it('rejects an invalid object with all causes, and accepts a valid one', async () => {
    const wrong = policy('wrong', {
      module: 'builtin:cel',
      settings: { validations: [{ expression: '1 +' }] },
      sideEffects: 'Some',
    });
    await assert.rejects(
      user.create(POLICIES, wrong),
      (error: Error & { code: number; details: { causes: object[] } }) => {
        assert.equal(error.code, 422);
        assert.match(error.message, /^admission webhook "policies\.own-kinds\.portcullis\.dev" denied the request: /);
        assert.match(error.message, /<input>:1:4: Syntax error/);
        assert.deepEqual(
          error.details.causes.map((cause) => (cause as { field: string }).field),
          ['spec.sideEffects', 'spec.settings.validations[0].expression'],
        );
        return true;
      },
    );
    const right = await user.create(POLICIES, policy('right'));
    const change = { spec: { settings: { enforce: 'basic' } } };
    await assert.rejects(user.patch(POLICIES, { name: 'right' }, { type: 'merge', body: change }), { code: 422 });
    assert.deepEqual((await user.get(POLICIES, { name: 'right' })).metadata, right.metadata);
  });

  it('lets only the controller write revisions', async () => {
    await assert.rejects(user.create(REVISIONS, revision('mine')), { code: 403 });
    await controller.create(REVISIONS, revision('one'));
    const key = { namespace: 'default', name: 'one' };
    const status = { status: { state: 'Serving' } };
    const asStatus = { subresource: 'status' } as const;
    await assert.rejects(user.patch(REVISIONS, key, { type: 'merge', body: status }, asStatus), { code: 403 });
    await controller.patch(REVISIONS, key, { type: 'merge', body: status }, asStatus);
    const auditor = cluster.as({ username: AUDITOR, groups: ['system:masters'] });
    const preview = { summary: '0', state: 'Complete', reason: 'Compared', message: 'nothing' };
    await auditor.patch(REVISIONS, key, { type: 'merge', body: { status: { preview } } }, asStatus);
    const more = { status: { preview: { summary: '1' }, state: 'Retired' } };
    await assert.rejects(auditor.patch(REVISIONS, key, { type: 'merge', body: more }, asStatus), { code: 403 });
    const other = { status: { preview: { summary: '2' } } };
    await assert.rejects(user.patch(REVISIONS, key, { type: 'merge', body: other }, asStatus), { code: 403 });
    const snapshot = { spec: { snapshot: { mode: 'monitor' } } };
    await assert.rejects(user.patch(REVISIONS, key, { type: 'merge', body: snapshot }), { code: 403 });
    await user.patch(REVISIONS, key, { type: 'merge', body: { metadata: { annotations: { a: 'b' } } } });
    await user.delete(REVISIONS, key);
  });

  it('restores its configuration after a change or a deletion, and writes it no more than that', async () => {
    const wanted = await user.get(CONFIGURATIONS, KEY);
    const seen = async (isSo: (configuration: KubernetesObject) => boolean): Promise<void> => {
      for await (const event of user.watch(CONFIGURATIONS, { signal: AbortSignal.timeout(5000) })) {
        if (event.type !== 'BOOKMARK' && event.type !== 'DELETED' && isSo(event.object)) {
          return;
        }
      }
      assert.fail('the configuration was not restored');
    };
    const isRight = ({ metadata, webhooks }: KubernetesObject): boolean =>
      metadata.name === KEY.name && JSON.stringify(webhooks) === JSON.stringify(wanted['webhooks']);
    await user.patch(CONFIGURATIONS, KEY, { type: 'json', body: [{ op: 'remove', path: '/webhooks/0' }] });
    await seen(isRight);
    await user.patch(CONFIGURATIONS, KEY, { type: 'merge', body: { metadata: { labels: null } } });
    await seen((one) => isRight(one) && one.metadata.labels?.['app.kubernetes.io/managed-by'] === 'portcullis');
    await user.delete(CONFIGURATIONS, KEY);
    await seen(isRight);
    const { revision: before } = cluster;
    await assert.rejects(user.create(POLICIES, policy('covered', { sideEffects: 'Some' })), { code: 422 });
    assert.equal(cluster.revision, before);
  });

  it('rejects invalid requests, and continues', async () => {
    const deep = `{"request":{"uid":"u","operation":"UPDATE","kind":{"group":"policies.kubewarden.io","kind":"ClusterAdmissionPolicy"},"object":{"spec":${'['.repeat(50_000)}${']'.repeat(50_000)}},"oldObject":{"spec":${'['.repeat(50_000)}${']'.repeat(50_000)}}}}`;
    for (const [body, options, status] of [
      ['', {}, 400],
      ['{', {}, 400],
      ['null', {}, 400],
      ['[]', {}, 400],
      ['{"request":1}', {}, 400],
      ['{"request":{}}', {}, 400],
      [Buffer.from([0x7b, 0xff, 0x7d]), {}, 400],
      ['{"request":{"uid":"u","object":7,"kind":"x"}}', {}, 200],
      ['{"request":{"uid":"u","operation":"CREATE","kind":{"__proto__":1}}}', {}, 200],
      [deep, {}, 500],
      ['{}', { path: '/validate' }, 404],
      ['', { method: 'GET' }, 405],
      ['{}', { type: 'text/plain' }, 415],
      [Buffer.alloc(8 * 1024 * 1024), {}, 413],
    ] as const) {
      const answer = await send(body, options);
      assert.equal(answer.status, status, `${String(body).slice(0, 60)}: ${answer.body.slice(0, 300)}`);
    }
    await assert.rejects(user.create(POLICIES, policy('still-covered', { sideEffects: 'Some' })), { code: 422 });
  });

  it('handles one review in a turn of the event loop, so that many large ones leave time for other work', async () => {
    let turn = 0;
    let counting = setImmediate(function count() {
      turn += 1;
      counting = setImmediate(count);
    });
    const turns: number[] = [];
    const log = pino({}, { write: (line) => void (line.includes('object refused') && turns.push(turn)) });
    const caches = new SharedCaches({ cluster: controller, log });
    const ca = readFileSync(certificates.caFile, 'utf8');
    const options = { cluster: controller, caches, namespace: 'portcullis', ca, log, controllerUser: CONTROLLER };
    const other = new OwnKindsWebhook({
      ...options,
      host: '127.0.0.1',
      port: 0,
      tls: certificates,
      apiServers: ['127.0.0.1'],
    });
    const aborting = new AbortController();
    const running = other.start(aborting.signal);
    // Policies are reviewed in another thread, whose answers may arrive together.
    const kind = { group: 'portcullis.dev', kind: 'PolicyRevision' };
    const object = revision('a');
    const body = JSON.stringify({ request: { uid: 'u', operation: 'CREATE', kind, object } });
    const head = `POST /validate-own-kinds HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const socket = tlsConnect({ host: '127.0.0.1', port: Number(new URL(await other.url).port), ca });
    // In one write, so that all are read at once.
    socket.write(`${head}${body}`.repeat(5));
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject).on('data', () => {
        if (turns.length === 5) {
          resolve();
        }
      });
    });
    socket.destroy();
    clearImmediate(counting);
    aborting.abort();
    await running;
    assert.equal(new Set(turns).size, 5, turns.join());
  });

  it('serves a renewed certificate', async () => {
    const renewed = await ensureLocalCertificates(join(folder, 'renewed'));
    copyFileSync(renewed.certFile, certificates.certFile);
    copyFileSync(renewed.keyFile, certificates.keyFile);
    const deadline = performance.now() + 10_000;
    const isRenewed = (): Promise<boolean> =>
      send('').then(
        () => false,
        () => true,
      );
    while (!(await isRenewed())) {
      assert.ok(performance.now() < deadline, 'the old certificate is still served');
    }
    copyFileSync(renewed.caFile, certificates.caFile);
    assert.equal((await send('')).status, 400);
  });

  it('rejects only the writes that it validates while it is down', async () => {
    await stop();
    const { uid } = (await user.get(CONFIGURATIONS, KEY)).metadata;
    assert.ok(uid, 'the configuration stays');
    await assert.rejects(user.create(POLICIES, policy('late')), { code: 500, message: /failed calling webhook/ });
    const key = { name: 'right' };
    await user.patch(POLICIES, key, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } });
    const status = { status: { phase: 'Active' } };
    await controller.patch(POLICIES, key, { type: 'merge', body: status }, { subresource: 'status' });
    await controller.patch(POLICIES, key, { type: 'merge', body: { spec: { mode: 'protect', message: 'x' } } });
    await controller.create(REVISIONS, revision('two'));
    const finalizers = { metadata: { finalizers: ['example.com/a'], annotations: { a: 'b' } } };
    await user.patch(REVISIONS, { namespace: 'default', name: 'two' }, { type: 'merge', body: finalizers });
    await user.delete(POLICIES, key);
    await user.create(knownKind('v1', 'ConfigMap'), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'c', namespace: 'default' },
    });
    await start();
    // The configuration now has the new port and the new certificate.
    await assert.rejects(user.create(POLICIES, policy('late', { sideEffects: 'Some' })), { code: 422 });
    await user.create(POLICIES, policy('late'));
  });
});
