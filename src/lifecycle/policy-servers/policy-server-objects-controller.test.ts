import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EmbeddedCluster } from '../../apiserver/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  type JsonObject,
  type KubernetesObject,
  POLICY_SERVERS,
  knownKind,
} from '../../resources/index.ts';
import { EXTERNAL_CERTIFICATE_NAMESPACE_RULES } from '../certificates/certificate-rules.ts';
import { OBJECT_KINDS } from './object-kinds.ts';
import { eventually, grantController, ObjectsScene, openCluster } from './testing/objects-scene.ts';
import { EVERYTHING, SETTINGS, VERIFICATION_CONFIG } from './testing/policy-servers.ts';
import { MAX_VERIFICATION_BYTES } from './verification-files.ts';

const ALL_KINDS = OBJECT_KINDS.map(({ kind }) => kind);
const USUAL_KINDS = ALL_KINDS.filter((kind) => kind !== 'ConfigMap' && kind !== 'PodDisruptionBudget');
/** Time in which an unexpected write would happen. Milliseconds. */
const QUIET_MS = 60;

describe('PolicyServerObjectsController', { timeout: 30_000 }, () => {
  let cluster: EmbeddedCluster;
  let scene: ObjectsScene;
  beforeEach(async () => {
    cluster = await openCluster();
    scene = new ObjectsScene(cluster.admin);
  });
  afterEach(async () => {
    await scene[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  const isDone = (): boolean => scene.condition('DeploymentReconciled') === 'True ReconciliationSucceeded';

  it('creates all objects, and writes nothing while they are unchanged', async () => {
    await scene.create(EVERYTHING);
    await eventually(isDone);
    assert.deepEqual(
      await scene.kinds(),
      ALL_KINDS.filter((kind) => kind !== 'ServiceAccount'),
    );
    assert.equal(scene.written.length, ALL_KINDS.length - 1);
    await using other = new ObjectsScene(cluster.admin);
    await eventually(() => other.condition('DeploymentReconciled') === 'True ReconciliationSucceeded');
    await sleep(QUIET_MS);
    assert.deepEqual(other.written, [], 'another leader finds nothing to do');
    assert.equal(scene.written.length, ALL_KINDS.length - 1);
  });

  it('restores changed and deleted objects', async () => {
    await scene.create();
    await eventually(isDone);
    const { namespace } = SETTINGS;
    const name = 'policy-server-default';
    const edit = { spec: { template: { spec: { containers: [{ name: 'policy-server', image: 'evil' }] } } } };
    const deployments = knownKind('apps/v1', 'Deployment');
    await cluster.admin.patch(deployments, { namespace, name }, { type: 'strategic', body: edit });
    const image = async (): Promise<string> =>
      JSON.stringify((await scene.object('Deployment'))?.spec).match(/"image":"([^"]*)"/)?.[1] ?? '';
    await eventually(async () => (await image()) === SETTINGS.image);
    const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'mallory' }];
    const bindings = knownKind('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding');
    await cluster.admin.patch(bindings, { name: `portcullis-${name}` }, { type: 'merge', body: { subjects } });
    await eventually(async () => !JSON.stringify(await scene.object('ClusterRoleBinding')).includes('mallory"}'));
    await cluster.admin.delete(knownKind('v1', 'Service'), { namespace, name });
    await eventually(async () => (await scene.object('Service')) !== undefined);
    const unlabelled = { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } };
    await cluster.admin.patch(
      knownKind('v1', 'ServiceAccount'),
      { namespace, name },
      { type: 'merge', body: unlabelled },
    );
    await eventually(
      async () =>
        (await scene.object('ServiceAccount'))?.metadata.labels?.['app.kubernetes.io/managed-by'] === 'portcullis',
    );
  });

  it('keeps fields of other writers', async () => {
    await scene.create();
    await eventually(isDone);
    const key = { namespace: SETTINGS.namespace, name: 'policy-server-default' };
    const body = { metadata: { annotations: { 'example.com/theirs': 'x' } } };
    scene.written.length = 0;
    await cluster.admin.patch(knownKind('v1', 'Service'), key, { type: 'merge', body });
    await sleep(QUIET_MS);
    assert.deepEqual(scene.written, []);
    await scene.change({ metricsPort: 9000 });
    await eventually(() => scene.written.includes('patch Service policy-server-default'));
    await sleep(QUIET_MS);
    assert.equal((await scene.object('Service'))?.metadata.annotations?.['example.com/theirs'], 'x');
  });

  it('removes objects that are no longer wanted', async () => {
    await scene.create({ replicas: 2, insecureSources: ['a'] });
    await eventually(isDone);
    assert.deepEqual(await scene.kinds(), ALL_KINDS);
    await scene.change({ replicas: 1, insecureSources: null });
    await eventually(async () => (await scene.kinds()).length === USUAL_KINDS.length);
    assert.deepEqual(await scene.kinds(), USUAL_KINDS);
  });

  it('ignores PolicyServers of other controllers, until it takes them over', async () => {
    await scene.create({}, { finalizers: ['kubewarden.io/finalizer'] });
    await eventually(() => scene.lines.some(({ msg }) => msg === 'PolicyServer belongs to another controller'));
    await sleep(QUIET_MS);
    assert.deepEqual(scene.written, []);
    assert.equal(scene.controller.isOurs('default'), false);
    assert.equal(await scene.gauge('portcullis_foreign_policy_servers'), 1);
    const body = { metadata: { annotations: { 'portcullis.dev/take-over': 'true' } } };
    await cluster.admin.patch(POLICY_SERVERS, { name: 'default' }, { type: 'merge', body });
    await eventually(isDone);
    assert.equal(scene.controller.isOurs('default'), true);
    await cluster.admin.delete(POLICY_SERVERS, { name: 'default' });
    // No other controller would remove the finalizer.
    await eventually(async () => (await scene.kinds()).length === 0);
    await assert.rejects(cluster.admin.get(POLICY_SERVERS, { name: 'default' }), { code: 404 });
  });

  it('does not change an object that another user created', async () => {
    const metadata = { name: 'policy-server-default', namespace: SETTINGS.namespace };
    const ports = [{ port: 443 }];
    const theirs = { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'x' }, ports } };
    await cluster.admin.create(knownKind('v1', 'Service'), theirs);
    await scene.create();
    await eventually(() => scene.condition('ServiceReconciled') === 'False NameTaken');
    assert.match(
      scene.message('ServiceReconciled'),
      /Service portcullis\/policy-server-default was created by another user or product/,
    );
    assert.deepEqual((await scene.object('Service'))?.spec['selector'], { app: 'x' });
    assert.equal(scene.condition('DeploymentReconciled'), 'True ReconciliationSucceeded', 'the others are made');
  });

  it('reports objects that the cluster rejects, and continues when it accepts them', async () => {
    await scene.create({ priorityClassName: 'Not A Name' });
    await eventually(() => scene.condition('DeploymentReconciled') === 'False ReconciliationFailed');
    assert.match(scene.message('DeploymentReconciled'), /^Deployment: .*priorityClassName/);
    assert.equal(scene.condition('ServiceReconciled'), 'True ReconciliationSucceeded');
    assert.equal(
      scene.controller.report('default')?.failure?.state,
      'stalled',
      'the same write would be refused again',
    );
    await scene.change({ priorityClassName: null });
    await eventually(isDone);
    assert.equal(scene.controller.report('default')?.failure, undefined);
  });

  it('reports objects that it may not write, and writes them once it may', async () => {
    await scene[Symbol.asyncDispose]();
    const user = { username: 'controller', groups: ['system:authenticated'], uid: '', extra: {} };
    await grantController(cluster.admin, user.username);
    const roles = knownKind('rbac.authorization.k8s.io/v1', 'Role');
    const key = { namespace: SETTINGS.namespace, name: 'controller' };
    const role = (await cluster.admin.get(roles, key)) as KubernetesObject & {
      rules: readonly { resources: readonly string[]; verbs: readonly string[] }[];
    };
    const readOnly = role.rules.map((rule) =>
      rule.resources.includes('deployments') ? { ...rule, verbs: ['get', 'list', 'watch'] } : rule,
    );
    await cluster.admin.patch(roles, key, { type: 'merge', body: { rules: readOnly } as unknown as JsonObject });
    await using restricted = new ObjectsScene(cluster.admin, cluster.as(user));
    await restricted.create();
    await eventually(() => restricted.condition('DeploymentReconciled') === 'False ReconciliationFailed');
    assert.match(restricted.message('DeploymentReconciled'), /^Deployment: deployments.apps ".*" is forbidden: User/);
    assert.equal(restricted.condition('ServiceReconciled'), 'True ReconciliationSucceeded');
    const { state, reason } = restricted.controller.report('default')?.failure ?? {};
    assert.deepEqual([state, reason], ['reconciling', 'ReconcileFailed']);
    const { rules } = role;
    await cluster.admin.patch(roles, key, { type: 'merge', body: { rules } as unknown as JsonObject });
    await eventually(() => restricted.condition('DeploymentReconciled') === 'True ReconciliationSucceeded');
    assert.equal(restricted.controller.report('default')?.failure, undefined);
  });

  const CONFIG_MAPS = knownKind('v1', 'ConfigMap');
  const configMap = (data: JsonObject): KubernetesObject => {
    const metadata = { name: 'signatures', namespace: SETTINGS.namespace };
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  };
  const changeConfigMap = async (data: JsonObject): Promise<void> => {
    const key = { namespace: SETTINGS.namespace, name: 'signatures' };
    await cluster.admin.patch(CONFIG_MAPS, key, { type: 'merge', body: { data } });
  };
  const deploymentText = async (): Promise<string> => JSON.stringify((await scene.object('Deployment'))?.spec);

  it('creates nothing until a spec that requires signatures has a valid verification config', async () => {
    await scene.create({ verificationConfig: 'signatures' });
    await eventually(() => scene.condition('DeploymentReconciled') === 'False VerificationConfigNotFound');
    assert.match(scene.message('DeploymentReconciled'), /ConfigMap portcullis\/signatures does not exist/);
    assert.equal(scene.controller.report('default')?.failure?.state, 'reconciling', 'it may be applied soon');
    await cluster.admin.create(CONFIG_MAPS, configMap({ other: 'x' }));
    await eventually(() => scene.message('DeploymentReconciled').includes('has no key verification-config'));
    await changeConfigMap({ 'verification-config': 'apiVersion: v1\nallOf: many\n' });
    await eventually(() => scene.condition('DeploymentReconciled') === 'False VerificationConfigInvalid');
    assert.match(
      scene.message('DeploymentReconciled'),
      /^spec\.verificationConfig: ConfigMap portcullis\/signatures, key verification-config:2:\d+: allOf: /,
    );
    assert.equal(scene.controller.report('default')?.failure?.state, 'stalled');
    await changeConfigMap({ 'verification-config': `# ${'x'.repeat(MAX_VERIFICATION_BYTES)}\n${VERIFICATION_CONFIG}` });
    await eventually(() => scene.message('DeploymentReconciled').includes('too large'));
    assert.deepEqual(scene.written, []);
    await changeConfigMap({ 'verification-config': VERIFICATION_CONFIG });
    await eventually(isDone);
    assert.equal(scene.controller.report('default')?.failure, undefined);
    assert.match(await deploymentText(), /--verification-path=\/etc\/portcullis\/verification\/verification\.yml/);
  });

  it('replaces pods when the verification config changes, and keeps the last valid one', async () => {
    await cluster.admin.create(CONFIG_MAPS, configMap({ 'verification-config': VERIFICATION_CONFIG }));
    await scene.create({ verificationConfig: 'signatures' });
    await eventually(isDone);
    const before = await deploymentText();
    await changeConfigMap({ 'verification-config': `# Changed\n${VERIFICATION_CONFIG}` });
    await eventually(async () => (await deploymentText()) !== before);
    const after = await deploymentText();
    assert.ok(after.includes('# Changed'));
    scene.written.length = 0;
    await changeConfigMap({ 'verification-config': 'apiVersion: v2' });
    await eventually(() => scene.condition('DeploymentReconciled') === 'False VerificationConfigInvalid');
    await cluster.admin.delete(CONFIG_MAPS, { namespace: SETTINGS.namespace, name: 'signatures' });
    await eventually(() => scene.condition('DeploymentReconciled') === 'False VerificationConfigNotFound');
    await scene.change({ image: 'example.com/other' });
    await sleep(QUIET_MS);
    assert.deepEqual(scene.written, []);
    assert.equal(await deploymentText(), after);
    await scene.change({ verificationConfig: null });
    await eventually(async () => !(await deploymentText()).includes('verification'));
  });

  it('reports unused fields', async () => {
    await scene.create({
      image: 'ghcr.io/kubewarden/policy-server:v1',
      env: [{ name: 'KUBEWARDEN_VERIFICATION_CONFIG_PATH', value: '/none' }],
    });
    await eventually(isDone);
    assert.equal(scene.condition('SpecSupported'), 'False FieldsNotUsed');
    for (const field of ['spec.image', 'spec.env']) {
      assert.ok(scene.message('SpecSupported').includes(field), field);
    }
    const { image, moduleCache } = scene.controller.report('default') ?? {};
    assert.deepEqual({ image, moduleCache }, { image: SETTINGS.image, moduleCache: 'emptyDir' });
  });

  it('reports why pods are missing', async () => {
    await scene.create();
    await eventually(isDone);
    const message = 'pods "x" is forbidden: exceeded quota';
    const failure = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message };
    const key = { namespace: SETTINGS.namespace, name: 'policy-server-default' };
    const body = { status: { conditions: [failure] } };
    const options = { subresource: 'status' };
    await cluster.admin.patch(knownKind('apps/v1', 'Deployment'), key, { type: 'merge', body }, options);
    await eventually(() => scene.condition('DeploymentReconciled') === 'False PodsNotCreated');
    assert.match(scene.message('DeploymentReconciled'), /exceeded quota/);
  });

  describe('a deleted PolicyServer', () => {
    it('has its objects removed', async () => {
      await scene.create(EVERYTHING);
      await eventually(isDone);
      await cluster.admin.delete(POLICY_SERVERS, { name: 'default' });
      await eventually(async () => (await scene.kinds()).length === 0);
      assert.equal(scene.controller.report('default'), undefined);
    });

    it('keeps them while a policy names it or webhooks refer to it', async () => {
      await scene.create();
      await scene.policy('p');
      await eventually(isDone);
      const configurations = knownKind('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration');
      const labels = { 'app.kubernetes.io/managed-by': 'portcullis', 'portcullis.dev/policy-server': 'default' };
      await cluster.admin.create(configurations, {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: 'portcullis-default', labels },
        webhooks: [],
      });
      await cluster.admin.delete(POLICY_SERVERS, { name: 'default' });
      await assert.rejects(cluster.admin.get(POLICY_SERVERS, { name: 'default' }), { code: 404 });
      const stays = (): number => scene.lines.filter(({ msg }) => msg.includes('its processes keep running')).length;
      await eventually(() => stays() > 0);
      assert.deepEqual(await scene.kinds(), USUAL_KINDS);
      assert.equal(await scene.gauge('portcullis_orphaned_policy_servers'), 1);
      await cluster.admin.delete(CLUSTER_ADMISSION_POLICIES, { name: 'p' });
      await eventually(() => stays() > 1);
      assert.deepEqual(await scene.kinds(), USUAL_KINDS);
      await cluster.admin.delete(configurations, { name: 'portcullis-default' });
      await eventually(async () => (await scene.kinds()).length === 0);
      assert.equal(await scene.gauge('portcullis_orphaned_policy_servers'), 0);
    });

    it('has its certificates removed, unless they are managed externally', async () => {
      const secret = (end: string, labels: Record<string, string>): KubernetesObject => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `policy-server-default-${end}`, namespace: SETTINGS.namespace, labels },
      });
      const secrets = knownKind('v1', 'Secret');
      await cluster.admin.create(secrets, secret('webhook', { 'app.kubernetes.io/managed-by': 'portcullis' }));
      await cluster.admin.create(secrets, secret('control', {}));
      await scene.create();
      await eventually(isDone);
      await cluster.admin.delete(POLICY_SERVERS, { name: 'default' });
      await eventually(() => scene.written.includes('delete Secret policy-server-default-webhook'));
      const { items } = await cluster.admin.list(secrets, { namespace: SETTINGS.namespace });
      assert.deepEqual(
        items.map(({ metadata }) => metadata.name),
        ['policy-server-default-control'],
      );
    });
  });

  describe('access of context-aware policies', () => {
    const reads = (...kinds: readonly (readonly [string, string])[]): JsonObject => ({
      contextAwareResources: kinds.map(([apiVersion, kind]) => ({ apiVersion, kind })),
    });
    const granted = async (): Promise<readonly string[]> => {
      const role = await scene.object<
        KubernetesObject & { rules: readonly { resources: readonly string[]; verbs: readonly string[] }[] }
      >('ClusterRole');
      return (role?.rules ?? []).flatMap(({ resources, verbs }) =>
        resources.map((resource) => `${resource}:${verbs.join('+')}`),
      );
    };
    const READ = 'get+list+watch';

    it('follows the declarations of policies', async () => {
      await scene.create();
      await eventually(isDone);
      const base = await granted();
      await scene.policy('p', reads(['apps/v1', 'Deployment'], ['v1', 'Pod']));
      await scene.policy('q', reads(['v1', 'Pod'], ['authorization.k8s.io/v1', 'SubjectAccessReview']));
      const expected = [...base, `pods:${READ}`, `deployments:${READ}`, 'subjectaccessreviews:create'];
      await eventually(async () => (await granted()).length === expected.length);
      assert.deepEqual(await granted(), expected);
      const body = { spec: reads(['v1', 'Service']) };
      await cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, { name: 'p' }, { type: 'merge', body });
      await cluster.admin.delete(CLUSTER_ADMISSION_POLICIES, { name: 'q' });
      await eventually(async () => (await granted()).join() === [...base, `services:${READ}`].join());
      assert.equal(scene.condition('ContextAwareAccessGranted'), 'True Granted');
    });

    it('excludes kinds that the cluster does not serve', async () => {
      await scene.policy('p', reads(['example.com/v1', 'Widget'], ['v1', 'Pod']));
      await scene.create();
      await eventually(() => scene.condition('ContextAwareAccessGranted') === 'False KindsNotServed');
      assert.match(scene.message('ContextAwareAccessGranted'), /example\.com\/v1\/Widget \(for kw\.cap\.p\)/);
      assert.ok((await granted()).includes(`pods:${READ}`));
    });
  });
});

describe('a controller with external certificates', { timeout: 30_000 }, () => {
  it('removes a PolicyServer, and keeps its Secrets, which it may not write', async () => {
    const user = { username: 'controller', groups: ['system:authenticated'] };
    await using cluster = await openCluster();
    await grantController(cluster.admin, user.username, EXTERNAL_CERTIFICATE_NAMESPACE_RULES);
    // The label remains from when the controller managed the Secret.
    const labels = { 'app.kubernetes.io/managed-by': 'portcullis' };
    const key = { namespace: SETTINGS.namespace, name: 'policy-server-default-webhook' };
    const secrets = knownKind('v1', 'Secret');
    await cluster.admin.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { ...key, labels } });
    await using scene = new ObjectsScene(cluster.admin, cluster.as(user), 'external');
    await scene.create();
    await eventually(() => scene.condition('DeploymentReconciled') === 'True ReconciliationSucceeded');
    await cluster.admin.delete(POLICY_SERVERS, { name: 'default' });
    await eventually(async () => (await scene.kinds()).length === 0);
    await sleep(QUIET_MS);
    assert.ok(!scene.written.some((line) => line.startsWith('delete Secret')), scene.written.join());
    await cluster.admin.get(secrets, key);
  });
});

describe('a controller with its own rights only', { timeout: 30_000 }, () => {
  const USER = { username: 'controller', groups: ['system:authenticated'] };
  let cluster: EmbeddedCluster;
  let scene: ObjectsScene;
  before(async () => {
    cluster = await openCluster();
    await grantController(cluster.admin, USER.username);
    scene = new ObjectsScene(cluster.admin, cluster.as(USER));
  });
  after(async () => {
    await scene[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  it('creates all objects, grants rights that it has, and reports the others', async () => {
    const contextAwareResources = [
      { apiVersion: 'v1', kind: 'Pod' },
      { apiVersion: 'v1', kind: 'Secret' },
    ];
    await scene.policy('p', { contextAwareResources });
    await scene.create(EVERYTHING);
    await eventually(() => scene.condition('ContextAwareAccessGranted') === 'False NotGranted');
    assert.match(
      scene.message('ContextAwareAccessGranted'),
      /does not have: get, list, watch secrets \(for kw\.cap\.p\)\. Add these rights to a ClusterRole with the label rbac\.portcullis\.dev/,
    );
    assert.equal(scene.condition('AccessReconciled'), 'True ReconciliationSucceeded');
    const role = JSON.stringify(await scene.object('ClusterRole'));
    assert.ok(role.includes('"pods"') && !role.includes('"secrets"'));
    assert.deepEqual(
      await scene.kinds(),
      ALL_KINDS.filter((kind) => kind !== 'ServiceAccount'),
    );
    await cluster.admin.delete(CLUSTER_ADMISSION_POLICIES, { name: 'p' });
    await eventually(() => scene.condition('ContextAwareAccessGranted') === 'True Granted');
    await cluster.admin.delete(POLICY_SERVERS, { name: 'default' });
    await eventually(async () => (await scene.kinds()).length === 0);
  });
});
