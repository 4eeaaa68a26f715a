// The objects of PolicyServers on a real API server, written by a controller with exactly its own rights. They are stored as
// written, written once, and restored after edits; their pods conform to the Pod Security Standard `restricted`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { policyServerObjectName } from '../../src/lifecycle/certificates/policy-server-names.ts';
import { OBJECT_KINDS } from '../../src/lifecycle/policy-servers/object-kinds.ts';
import {
  grantController,
  ObjectsScene,
  prepareCluster,
} from '../../src/lifecycle/policy-servers/testing/objects-scene.ts';
import { EVERYTHING, SETTINGS } from '../../src/lifecycle/policy-servers/testing/policy-servers.ts';
import { type JsonObject, knownKind, type KubernetesObject, POLICY_SERVERS } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const CONTROLLER = 'controller';
const { namespace } = SETTINGS;
/** How long to wait for a write that must not happen. Milliseconds. */
const QUIET_MS = 500;

describe('objects of PolicyServers on a real API server', { skip: skipWithoutCluster() }, () => {
  let server: Cluster;
  let admin: KubernetesCluster;
  let user: KubernetesCluster;
  let scene: ObjectsScene;

  before(async () => {
    server = await startCluster({ users: { [CONTROLLER]: {} } });
    const connection = { server: server.url, ca: readFileSync(server.caFile, 'utf8') };
    admin = new KubernetesCluster({ ...connection, credentials: tokenCredentials(server.adminToken) });
    user = new KubernetesCluster({ ...connection, credentials: tokenCredentials(server.token(CONTROLLER)) });
    await prepareCluster(admin, {
      'pod-security.kubernetes.io/enforce': 'restricted',
      'pod-security.kubernetes.io/warn': 'restricted',
    });
    await grantController(admin, CONTROLLER);
    await eventually(async () => {
      await admin.list(POLICY_SERVERS);
      await user.list(POLICY_SERVERS);
    });
    scene = new ObjectsScene(admin, user);
  });
  after(async () => {
    await (scene as ObjectsScene | undefined)?.[Symbol.asyncDispose]();
    user?.close();
    admin?.close();
    await (server as Cluster | undefined)?.stop();
  });

  const made = (name: string): Promise<void> =>
    eventually(async () => {
      const { conditions = [] } = scene.controller.report(name) ?? {};
      assert.ok(conditions.length > 0, `nothing is reported of ${name}`);
      const wrong = conditions.filter(({ type, status }) => type !== 'SpecSupported' && status !== 'True');
      assert.deepEqual(wrong, []);
    });

  it('are stored as written for every spec, and written once', async () => {
    await scene.create({ replicas: 2 }, { name: 'plain' });
    await scene.create(EVERYTHING, { name: 'everything' });
    await scene.create({ moduleCache: { emptyDir: { sizeLimit: '1Gi' } } }, { name: 'a.name.with.dots' });
    await Promise.all(['plain', 'everything', 'a.name.with.dots'].map(made));
    assert.equal(scene.written.length, 3 * OBJECT_KINDS.length - 4, scene.written.join('\n'));
    await sleep(QUIET_MS);
    await using other = new ObjectsScene(admin, user);
    await eventually(async () => assert.ok(other.controller.report('plain') && other.controller.report('everything')));
    await sleep(QUIET_MS);
    assert.deepEqual(
      other.written,
      [],
      'another leader finds nothing to do: fields are counted as the API server does',
    );
    assert.equal(scene.written.length, 3 * OBJECT_KINDS.length - 4);
  });

  it('are restored after an edit', async () => {
    const name = 'policy-server-plain';
    for (const [kind, edit] of [
      ['Deployment', ['scale', 'deployment', name, '--replicas=0']],
      ['Deployment', ['set', 'image', `deployment/${name}`, 'policy-server=example.com/evil']],
      ['Service', ['patch', 'service', name, '-p', '{"spec":{"selector":{"app.kubernetes.io/part-of":"evil"}}}']],
      ['RoleBinding', ['delete', 'rolebinding', name]],
      ['PodDisruptionBudget', ['patch', 'pdb', name, '--type=merge', '-p', '{"spec":{"maxUnavailable":2}}']],
    ] as const) {
      scene.written.length = 0;
      const { code, stderr } = await server.kubectl([...edit, '-n', namespace]);
      assert.equal(code, 0, stderr);
      await eventually(async () => assert.ok(scene.written.includes(`patch ${kind} ${name}`), `${kind} is put back`));
      await sleep(QUIET_MS);
      assert.deepEqual(scene.written, [`patch ${kind} ${name}`]);
    }
    const deployment = await scene.object('Deployment', name);
    assert.equal(deployment?.spec['replicas'], 2);
    assert.ok(!JSON.stringify(deployment).includes('evil'));
  });

  it('make pods that the standard `restricted` lets in', async () => {
    for (const server of ['plain', 'a.name.with.dots']) {
      const name = policyServerObjectName(server);
      const deployment = await scene.object('Deployment', name);
      assert.ok(deployment);
      const template = deployment.spec['template'] as JsonObject;
      const metadata = { ...(template['metadata'] as JsonObject), name, namespace };
      const warnings: string[] = [];
      const pod = { apiVersion: 'v1', kind: 'Pod', ...template, metadata } as KubernetesObject;
      await admin.create(knownKind('v1', 'Pod'), pod, { onWarning: (text) => warnings.push(text) });
      assert.deepEqual(warnings, []);
    }
  });

  it('get no right that the controller does not have, and the missing rights are reported', async () => {
    const contextAwareResources = [
      { apiVersion: 'v1', kind: 'Pod' },
      { apiVersion: 'v1', kind: 'Secret' },
    ];
    await scene.policy('reads', { policyServer: 'plain', contextAwareResources });
    await eventually(async () =>
      assert.equal(scene.condition('ContextAwareAccessGranted', 'plain'), 'False NotGranted'),
    );
    assert.match(
      scene.message('ContextAwareAccessGranted', 'plain'),
      /get, list, watch secrets \(for kw\.cap\.reads\)/,
    );
    assert.equal(scene.condition('AccessReconciled', 'plain'), 'True ReconciliationSucceeded');
    const role = JSON.stringify(await scene.object('ClusterRole', 'policy-server-plain'));
    assert.ok(role.includes('"pods"') && !role.includes('"secrets"'), role);
  });

  it('stay when the PolicyServer is deleted and a policy names it, and go with the policy', async () => {
    await admin.delete(POLICY_SERVERS, { name: 'plain' });
    await admin.delete(POLICY_SERVERS, { name: 'everything' });
    await eventually(async () => assert.deepEqual(await scene.kinds('policy-server-everything'), []));
    assert.ok((await scene.kinds('policy-server-plain')).includes('Deployment'));
    const { code } = await server.kubectl(['delete', 'clusteradmissionpolicy', 'reads']);
    assert.equal(code, 0);
    await eventually(async () => assert.deepEqual(await scene.kinds('policy-server-plain'), []));
  });
});
