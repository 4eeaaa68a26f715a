import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { ANNOTATIONS, type ObjectMeta, POLICY_SERVERS, knownKind } from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { VALIDATING_WEBHOOKS } from '../webhooks/webhook-kinds.ts';
import { foreignReason, PolicyServerOwnership } from './ownership.ts';
import { policyServerLabels } from '../certificates/policy-server-names.ts';
import { eventually, openCluster } from './testing/objects-scene.ts';
import { policyServer, SETTINGS } from './testing/policy-servers.ts';

const server = (metadata: ObjectMeta): { metadata: ObjectMeta } => ({ metadata: { name: 'a', ...metadata } });
const deploymentWith = (labels: Record<string, string>): { metadata: ObjectMeta } => ({
  metadata: { name: 'policy-server-a', namespace: 'portcullis', labels },
});
const own = deploymentWith(policyServerLabels('a'));
const others = deploymentWith({ 'app.kubernetes.io/managed-by': 'kubewarden-controller' });

describe('the owner of a PolicyServer', () => {
  it('is Portcullis by default', () => {
    assert.equal(foreignReason(server({})), undefined);
    assert.equal(foreignReason(server({ finalizers: ['example.com/other'] })), undefined);
    assert.equal(foreignReason(server({}), own), undefined);
  });

  it('is another controller with Kubewarden’s finalizer, or a foreign Deployment', () => {
    assert.match(foreignReason(server({ finalizers: ['kubewarden.io/finalizer'] })) ?? '', /kubewarden\.io\/finalizer/);
    assert.match(foreignReason(server({ finalizers: ['kubewarden'] })) ?? '', /finalizer kubewarden /);
    assert.match(foreignReason(server({}), others) ?? '', /runs Deployment portcullis\/policy-server-a/);
    assert.notEqual(foreignReason(server({}), deploymentWith(policyServerLabels('b'))), undefined);
  });

  it('is Portcullis when another controller starts after Portcullis runs it', () => {
    assert.equal(foreignReason(server({ finalizers: ['kubewarden.io/finalizer'] }), own), undefined);
  });

  it('is Portcullis when webhooks refer to it and its other objects are gone', () => {
    const both = server({ finalizers: ['kubewarden.io/finalizer'] });
    assert.equal(foreignReason(both, undefined, true), undefined);
    assert.match(foreignReason(both, others, true) ?? '', /runs Deployment/);
  });

  it('is decided by the annotation', () => {
    const annotations = { 'portcullis.dev/take-over': 'true' };
    assert.equal(foreignReason(server({ annotations, finalizers: ['kubewarden.io/finalizer'] }), others), undefined);
    assert.match(
      foreignReason(server({ annotations: { 'portcullis.dev/take-over': 'false' } }), own) ?? '',
      /annotation/,
    );
    assert.notEqual(foreignReason(server({ annotations: { 'portcullis.dev/take-over': 'yes' } }), others), undefined);
  });
});

describe('PolicyServerOwnership', { timeout: 20_000 }, () => {
  it('names our PolicyServers as they are created, taken over and deleted', async () => {
    await using cluster = await openCluster();
    const { admin } = cluster;
    const { namespace } = SETTINGS;
    const caches = new SharedCaches({ cluster: admin, log: pino({ level: 'silent' }) });
    const ownership = new PolicyServerOwnership({ caches, namespace });
    const changes: string[] = [];
    const unsubscribe = ownership.subscribe((name) => changes.push(name));
    const stop = new AbortController();
    const running = caches.start(stop.signal);
    await admin.create(POLICY_SERVERS, policyServer({}, 'a'));
    const foreign = policyServer({}, 'b');
    await admin.create(POLICY_SERVERS, { ...foreign, metadata: { name: 'b', finalizers: ['kubewarden'] } });
    await eventually(() => changes.length === 2);
    assert.deepEqual(ownership.names(), ['a']);
    assert.deepEqual([ownership.isOurs('a'), ownership.isOurs('b'), ownership.isOurs('none')], [true, false, true]);
    const annotate = (value: string): Promise<unknown> =>
      admin.patch(
        POLICY_SERVERS,
        { name: 'b' },
        {
          type: 'merge',
          body: { metadata: { annotations: { [ANNOTATIONS.takeOver]: value } } },
        },
      );
    await annotate('true');
    await eventually(() => changes.length === 3);
    assert.deepEqual(ownership.names(), ['a', 'b']);
    // Deleted, but still running.
    const labels = policyServerLabels('a');
    const template = {
      metadata: { labels },
      spec: { serviceAccountName: 'policies', containers: [{ name: 'c', image: 'i' }] },
    };
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'policy-server-a', namespace, labels },
      spec: { selector: { matchLabels: labels }, template },
    };
    await admin.create(knownKind('apps/v1', 'Deployment'), deployment);
    await admin.delete(POLICY_SERVERS, { name: 'a' });
    await eventually(() => changes.length === 5);
    assert.deepEqual(ownership.names(), ['a', 'b']);
    assert.deepEqual(ownership.serviceAccounts(), ['policies']);
    // A copy with our labels but another name belongs to no PolicyServer.
    await admin.create(knownKind('apps/v1', 'Deployment'), {
      ...deployment,
      metadata: { ...deployment.metadata, name: 'copy' },
      spec: { ...deployment.spec, template: { ...template, spec: { ...template.spec, serviceAccountName: 'copied' } } },
    });
    const deployments = knownKind('apps/v1', 'Deployment');
    const key = { namespace, name: 'policy-server-a' };
    const body = { spec: { template: { spec: { serviceAccountName: 'others' } } } };
    await admin.patch(deployments, key, { type: 'merge', body });
    await eventually(() => changes.length === 6);
    assert.deepEqual(ownership.serviceAccounts(), ['others']);
    await admin.delete(deployments, key);
    await eventually(() => changes.length === 7);
    assert.deepEqual(ownership.names(), ['b']);
    assert.deepEqual(ownership.serviceAccounts(), []);
    // Its webhooks refer to it, so it is restored, even with a foreign finalizer.
    const webhookLabels = { 'app.kubernetes.io/managed-by': 'portcullis', 'portcullis.dev/policy-server': 'c' };
    const configuration = { metadata: { name: 'portcullis-c', labels: webhookLabels }, webhooks: [] };
    await admin.create(VALIDATING_WEBHOOKS, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      ...configuration,
    });
    await eventually(() => changes.length === 8);
    await admin.create(POLICY_SERVERS, {
      ...policyServer({}, 'c'),
      metadata: { name: 'c', finalizers: ['kubewarden.io/finalizer'] },
    });
    await eventually(() => changes.length === 9);
    assert.deepEqual(ownership.names(), ['b', 'c']);
    await admin.delete(VALIDATING_WEBHOOKS, { name: 'portcullis-c' });
    await eventually(() => changes.length === 10);
    assert.deepEqual([ownership.names(), changes.at(-1)], [['b'], 'c']);
    unsubscribe();
    stop.abort();
    await running;
  });
});
