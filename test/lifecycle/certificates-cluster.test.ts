// A controller issues certificates with its own access rights, and a real API server verifies them during a rotation of the CA.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import {
  AUTHORITY_SECRET,
  CertificateController,
  CONTROLLER_SERVICE,
  CONTROLLER_WEBHOOK_SECRET,
  ensureCertificates,
  OwnKindsWebhook,
  policyServerSecrets,
  SecretFiles,
} from '../../src/lifecycle/index.ts';
import { CERTIFICATE_NAMESPACE_RULES, OWN_KINDS_RULES } from '../../src/lifecycle/access-rules/index.ts';
import { policy } from '../../src/lifecycle/admission/testing/own-kinds-objects.ts';
import { ROTATE_ANNOTATION } from '../../src/lifecycle/certificates/authority-secret.ts';
import { customResourceDefinition, knownKind, OWN_KINDS } from '../../src/resources/index.ts';
import { type Runnable, SharedCaches } from '../../src/runtime/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { freePorts } from '../cluster/free-ports.ts';

const CONTROLLER = 'controller';
const NAMESPACE = 'portcullis';
const RBAC = 'rbac.authorization.k8s.io';
const POLICIES = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies';
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
/** Much longer than a change takes to reach a process and an API server on this machine. Milliseconds. */
const OVERLAP_MS = 4_000;
const settings = { authorityLifetimeMs: 600_000, leafLifetimeMs: 60_000, overlapMs: OVERLAP_MS };

/** Grants the access rules of a controller that this test needs. */
async function grant(cluster: Cluster): Promise<void> {
  const webhooks = {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
    verbs: ['list', 'watch'],
  };
  const apiVersion = `${RBAC}/v1`;
  const subjects = [{ apiGroup: RBAC, kind: 'User', name: CONTROLLER }];
  const bind = async (kind: 'Role' | 'ClusterRole', path: string, rules: readonly object[]): Promise<void> => {
    const metadata = { name: CONTROLLER };
    const [roles, bindings] = [`${path}/${kind.toLowerCase()}s`, `${path}/${kind.toLowerCase()}bindings`];
    await cluster.expect('POST', roles, { apiVersion, kind, metadata, rules });
    const roleRef = { apiGroup: RBAC, kind, name: CONTROLLER };
    await cluster.expect('POST', bindings, { apiVersion, kind: `${kind}Binding`, metadata, roleRef, subjects });
  };
  await bind('ClusterRole', `/apis/${apiVersion}`, [...OWN_KINDS_RULES, webhooks]);
  await bind('Role', `/apis/${apiVersion}/namespaces/${NAMESPACE}`, CERTIFICATE_NAMESPACE_RULES);
}

describe('certificates in a cluster', { skip: skipWithoutCluster() }, () => {
  it('are issued with the access rules of a controller, and trusted by the API server during a rotation', async () => {
    await using cleanup = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
    cleanup.defer(() => rmSync(folder, { recursive: true, force: true }));
    const cluster = await startCluster({ users: { [CONTROLLER]: {} } });
    cleanup.defer(() => cluster.stop());
    await cluster.createNamespace(NAMESPACE);
    for (const kind of OWN_KINDS) {
      const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
      await cluster.expect('POST', path, customResourceDefinition(kind));
    }
    await grant(cluster);
    const [port = 0] = await freePorts(1);
    // An API server without nodes reaches this Service by its external name.
    await cluster.expect('POST', `/api/v1/namespaces/${NAMESPACE}/services`, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: CONTROLLER_SERVICE },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });

    const connection = new KubernetesCluster({
      server: cluster.url,
      ca: readFileSync(cluster.caFile, 'utf8'),
      credentials: tokenCredentials(cluster.token(CONTROLLER)),
    });
    cleanup.defer(() => connection.close());
    const log = pino({ level: 'silent' });
    const stop = new AbortController();
    const running: Promise<void>[] = [];
    cleanup.defer(async () => {
      stop.abort();
      await Promise.all(running);
    });
    const shared = { cluster: connection, namespace: NAMESPACE, log };
    // An API server learns of new rights with a delay.
    await eventually(async () => {
      const secret = connection.get(knownKind('v1', 'Secret'), { namespace: NAMESPACE, name: 'portcullis-ca' });
      await assert.rejects(secret, { code: 404 });
    });
    await ensureCertificates({ ...shared, settings }, stop.signal);
    const caches = new SharedCaches({ cluster: connection, log });
    const events: string[] = [];
    const certificates = new CertificateController({
      ...shared,
      caches,
      mode: 'own',
      policyServers: { names: () => ['default'], subscribe: () => () => undefined },
      settings,
      events: { event: (_object, _type, reason) => void events.push(reason) },
    });
    const files = new SecretFiles({ ...shared, secret: CONTROLLER_WEBHOOK_SECRET, folder });
    const start = async (...runnables: readonly Runnable[]): Promise<void> => {
      running.push(...runnables.map((runnable) => runnable.start(stop.signal)));
      await Promise.all(runnables.map(async ({ ready }) => ready));
    };
    await start(caches, certificates, files);
    const webhook = new OwnKindsWebhook({
      cluster: connection,
      caches,
      namespace: NAMESPACE,
      host: '127.0.0.1',
      port,
      tls: { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') },
      service: { namespace: NAMESPACE, name: CONTROLLER_SERVICE, port },
      ca: certificates,
      controllerUser: CONTROLLER,
      log,
    });
    await start(webhook, webhook.registration);
    for (const secret of Object.values(policyServerSecrets('default'))) {
      const { body } = await cluster.request<{ type: string }>('GET', `${SECRETS}/${secret}`);
      assert.equal(body.type, 'kubernetes.io/tls');
    }

    // Dry runs call the webhook without storing the policy.
    const apply = (name: string, changes?: object): Promise<{ status: number; body: { message?: string } }> =>
      cluster.request('POST', `${POLICIES}?dryRun=All`, policy(name, changes));
    await eventually(async () => {
      assert.match((await apply('wrong', { sideEffects: 'Some' })).body.message ?? '', /admission webhook .* denied/);
    });
    const failures: string[] = [];
    let calls = 0;
    const load = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const { status, body } = await apply('right');
        calls += 1;
        if (status !== 201) {
          failures.push(`${events.join()}: ${body.message}`);
        }
        await sleep(10);
      }
    };
    running.push(load());
    const path = `${SECRETS}/${AUTHORITY_SECRET}`;
    const body = { metadata: { annotations: { [ROTATE_ANNOTATION]: 'now' } } };
    const contentType = 'application/merge-patch+json';
    assert.equal((await cluster.request('PATCH', path, body, { contentType })).status, 200);
    while (!events.includes('RotationCompleted') && failures.length === 0) {
      await sleep(20);
    }
    const soFar = calls;
    while (calls < soFar + 20) {
      await sleep(20);
    }
    assert.deepEqual(failures, []);
    assert.deepEqual(events, ['RotationStarted', 'AuthorityChanged', 'RotationCompleted']);
  });
});
