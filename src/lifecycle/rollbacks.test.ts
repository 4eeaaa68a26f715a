import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { ApiError, type Cluster } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  kubernetesKind,
  type PolicyRevision,
} from '../resources/index.ts';
import { rollBack } from './rollbacks.ts';

const KEY = { name: 'p' };
const { signal } = new AbortController();
const DIGEST = `sha256:${'a'.repeat(64)}`;

function spec(module: string): object {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
  return { module, mutating: false, rules };
}

/** A revision that served. */
function revision(number: number, snapshot: object, order = number): PolicyRevision {
  const { module } = snapshot as { module: string };
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: { name: `kw.cap.p-${number}` },
    spec: { revision: number, snapshot },
    status: { state: 'Retired', order, modules: [{ name: 'p', module, digest: DIGEST }] },
  } as unknown as PolicyRevision;
}

/** A cluster with a policy that has the annotation `rollback-to`. */
class Scene implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly events: string[] = [];

  private constructor(cluster: EmbeddedCluster) {
    this.cluster = cluster;
  }

  static async open(rollbackTo: string, module: string): Promise<Scene> {
    const cluster = await EmbeddedCluster.open();
    const crds = kubernetesKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    assert.ok(crds);
    await cluster.admin.create(crds, customResourceDefinition(CLUSTER_ADMISSION_POLICIES));
    await cluster.admin.create(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { ...KEY, annotations: { [ANNOTATIONS.rollbackTo]: rollbackTo } },
      spec: spec(module),
    });
    return new Scene(cluster);
  }

  policy(): Promise<AdmissionPolicyObject> {
    return this.cluster.admin.get(CLUSTER_ADMISSION_POLICIES, KEY);
  }

  /** Rolls back with a revision for each module. Their specs are copies of the policy's, with the defaults of the cluster. */
  async roll(
    modules: readonly string[],
    { policy, through = this.cluster.admin }: { policy?: AdmissionPolicyObject; through?: Cluster } = {},
  ): Promise<AdmissionPolicyObject> {
    const current = await this.policy();
    const revisions = modules.map((module, index) => revision(index + 1, { ...current.spec, module }));
    const events = {
      event: (_: object, type: string, reason: string, message: string): number =>
        this.events.push(`${type} ${reason}: ${message}`),
    };
    return await rollBack(through, CLUSTER_ADMISSION_POLICIES, policy ?? current, revisions, events, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster.close();
  }
}

function moduleOf({ spec: own }: AdmissionPolicyObject): string {
  return 'module' in own ? own.module : '';
}

/** A cluster that rejects patches of the spec, like another admission webhook. */
function refusing(cluster: Cluster, code: number): Cluster {
  return new Proxy(cluster, {
    get: (target, property) => {
      const member: unknown = Reflect.get(target, property);
      return typeof member !== 'function'
        ? member
        : (...args: unknown[]): unknown =>
            property === 'patch' && JSON.stringify(args[2]).includes('/spec')
              ? Promise.reject(new ApiError(code, 'Forbidden', 'frozen'))
              : Reflect.apply(member, target, args);
    },
  });
}

describe('rollBack', () => {
  it('rolls back from a spec without a revision to the revision that serves', async () => {
    await using scene = await Scene.open('previous', 'registry://r/bad:v2');
    const after = await scene.roll(['registry://r/good:v1']);
    assert.equal(moduleOf(after), `registry://r/good:v1@${DIGEST}`);
    assert.equal(after.metadata.annotations?.[ANNOTATIONS.rollbackTo], undefined);
  });

  it('skips a revision that differs only by its pinned digest', async () => {
    await using scene = await Scene.open('previous', `registry://r/p:v2@${DIGEST}`);
    const after = await scene.roll(['registry://r/p:v1', 'registry://r/p:v2', `registry://r/p:v2@${DIGEST}`]);
    assert.equal(moduleOf(after), `registry://r/p:v1@${DIGEST}`);
  });

  it('quotes an annotation that names no revision', async () => {
    await using scene = await Scene.open('', 'registry://r/p:v1');
    const after = await scene.roll(['registry://r/p:v1']);
    assert.equal(after.metadata.annotations?.[ANNOTATIONS.rollbackTo], undefined);
    assert.deepEqual(scene.events, ['Warning RollbackFailed: there is no revision "": revisions 1 are kept']);
  });

  it('reports a conflict, and changes nothing, when the policy was written since', async () => {
    await using scene = await Scene.open('1', 'registry://r/p:v2');
    const policy = await scene.policy();
    const body = { metadata: { labels: { newer: 'yes' } } };
    await scene.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, { type: 'merge', body });
    await assert.rejects(scene.roll(['registry://r/p:v1'], { policy }), { name: 'ApiError', code: 409 });
    assert.equal(moduleOf(await scene.policy()), 'registry://r/p:v2');
    assert.deepEqual(scene.events, []);
  });

  it('keeps the spec, and reports why, when the old spec is rejected', async () => {
    for (const code of [400, 403, 422]) {
      await using scene = await Scene.open('1', 'registry://r/p:v2');
      const after = await scene.roll(['registry://r/p:v1'], { through: refusing(scene.cluster.admin, code) });
      assert.equal(moduleOf(after), 'registry://r/p:v2');
      assert.equal(after.metadata.annotations?.[ANNOTATIONS.rollbackTo], undefined);
      assert.match(scene.events.join(), /^Warning RollbackFailed: the spec of revision 1 was not accepted: frozen/);
    }
  });
});
