import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { ANNOTATIONS, type ObjectMeta, POLICY_SERVERS } from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { VALIDATING_WEBHOOKS } from '../policy-kinds.ts';
import { foreignReason, isOurs, PolicyServerOwnership } from './ownership.ts';
import { policyServerLabels } from './policy-server-names.ts';
import { eventually, openCluster, typeOf } from './testing/objects-scene.ts';
import { policyServer, SETTINGS } from './testing/policy-servers.ts';

const server = (metadata: ObjectMeta): { metadata: ObjectMeta } => ({ metadata: { name: 'a', ...metadata } });
const deploymentWith = (labels: Record<string, string>): { metadata: ObjectMeta } => ({
  metadata: { name: 'policy-server-a', namespace: 'portcullis', labels },
});
const own = deploymentWith(policyServerLabels('a'));
const others = deploymentWith({ 'app.kubernetes.io/managed-by': 'kubewarden-controller' });

describe('whose a PolicyServer is', () => {
  it('ours, when nobody else has it', () => {
    assert.equal(isOurs(server({})), true);
    assert.equal(isOurs(server({ finalizers: ['example.com/other'] })), true);
    assert.equal(isOurs(server({}), own), true);
  });

  it("another's, when Kubewarden's finalizer is on it, or somebody else runs its Deployment", () => {
    assert.match(foreignReason(server({ finalizers: ['kubewarden.io/finalizer'] })) ?? '', /kubewarden\.io\/finalizer/);
    assert.match(foreignReason(server({ finalizers: ['kubewarden'] })) ?? '', /finalizer kubewarden /);
    assert.match(foreignReason(server({}), others) ?? '', /runs Deployment portcullis\/policy-server-a/);
    assert.equal(isOurs(server({}), deploymentWith(policyServerLabels('b'))), false);
  });

  it('ours still, when the other controller comes after we have begun to run it', () => {
    assert.equal(isOurs(server({ finalizers: ['kubewarden.io/finalizer'] }), own), true);
  });

  it('ours still, when API servers ask it and all that ran for it is gone', () => {
    const both = server({ finalizers: ['kubewarden.io/finalizer'] });
    assert.equal(foreignReason(both, undefined, true), undefined);
    assert.match(foreignReason(both, others, true) ?? '', /runs Deployment/);
  });

  it('as the annotation says, whatever else there is', () => {
    const annotations = { 'portcullis.dev/take-over': 'true' };
    assert.equal(isOurs(server({ annotations, finalizers: ['kubewarden.io/finalizer'] }), others), true);
    assert.match(
      foreignReason(server({ annotations: { 'portcullis.dev/take-over': 'false' } }), own) ?? '',
      /annotation/,
    );
    assert.equal(isOurs(server({ annotations: { 'portcullis.dev/take-over': 'yes' } }), others), false);
  });
});

describe('PolicyServerOwnership', { timeout: 20_000 }, () => {
  it('names what runs as ours, as servers come, change hands and go', async () => {
    await using cluster = await openCluster();
    const { admin } = cluster;
    const { namespace } = SETTINGS;
    const caches = new SharedCaches({ cluster: admin, log: pino({ level: 'silent' }) });
    const ownership = new PolicyServerOwnership({ caches, namespace });
    const told: string[] = [];
    const unsubscribe = ownership.subscribe((name) => told.push(name));
    const stop = new AbortController();
    const running = caches.start(stop.signal);
    await admin.create(POLICY_SERVERS, policyServer({}, 'a'));
    const foreign = policyServer({}, 'b');
    await admin.create(POLICY_SERVERS, { ...foreign, metadata: { name: 'b', finalizers: ['kubewarden'] } });
    await eventually(() => told.length === 2);
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
    await eventually(() => told.length === 3);
    assert.deepEqual(ownership.names(), ['a', 'b']);
    // One that is gone, and still runs.
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
    await admin.create(typeOf('apps/v1', 'Deployment'), deployment);
    await admin.delete(POLICY_SERVERS, { name: 'a' });
    await eventually(() => told.length === 5);
    assert.deepEqual(ownership.names(), ['a', 'b']);
    assert.deepEqual(ownership.serviceAccounts(), ['policies']);
    // A copy with our labels, under a name that we would not give it, is nobody's.
    await admin.create(typeOf('apps/v1', 'Deployment'), {
      ...deployment,
      metadata: { ...deployment.metadata, name: 'copy' },
      spec: { ...deployment.spec, template: { ...template, spec: { ...template.spec, serviceAccountName: 'copied' } } },
    });
    const deployments = typeOf('apps/v1', 'Deployment');
    const key = { namespace, name: 'policy-server-a' };
    const body = { spec: { template: { spec: { serviceAccountName: 'others' } } } };
    await admin.patch(deployments, key, { type: 'merge', body });
    await eventually(() => told.length === 6);
    assert.deepEqual(ownership.serviceAccounts(), ['others']);
    await admin.delete(deployments, key);
    await eventually(() => told.length === 7);
    assert.deepEqual(ownership.names(), ['b']);
    assert.deepEqual(ownership.serviceAccounts(), []);
    // Asked in its name: it is to be brought back, whoever has put a finalizer on it.
    const asked = { 'app.kubernetes.io/managed-by': 'portcullis', 'portcullis.dev/policy-server': 'c' };
    const configuration = { metadata: { name: 'portcullis-c', labels: asked }, webhooks: [] };
    await admin.create(VALIDATING_WEBHOOKS, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      ...configuration,
    });
    await eventually(() => told.length === 8);
    await admin.create(POLICY_SERVERS, {
      ...policyServer({}, 'c'),
      metadata: { name: 'c', finalizers: ['kubewarden.io/finalizer'] },
    });
    await eventually(() => told.length === 9);
    assert.deepEqual(ownership.names(), ['b', 'c']);
    await admin.delete(VALIDATING_WEBHOOKS, { name: 'portcullis-c' });
    await eventually(() => told.length === 10);
    assert.deepEqual([ownership.names(), told.at(-1)], [['b'], 'c']);
    unsubscribe();
    stop.abort();
    await running;
  });
});
