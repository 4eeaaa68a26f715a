import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  type JsonObject,
  knownKind,
  type KubernetesObject,
  LAST_APPLIED_ANNOTATION,
  type PolicyRevision,
} from '../../resources/index.ts';
import { rollBack } from './rollbacks.ts';

const KEY = { name: 'p' };
const { signal } = new AbortController();
const DIGEST = `sha256:${'a'.repeat(64)}`;

function spec(module: string): object {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
  return { module, mutating: false, rules };
}

function policyOf(own: object): KubernetesObject {
  return { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', metadata: KEY, spec: own };
}

/** A revision that served. */
function revision(number: number, snapshot: object, order = number): PolicyRevision {
  const { module } = snapshot as { module: string };
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: { name: `kw.cap.p-${number}` },
    spec: { revision: number, policy: { kind: 'ClusterAdmissionPolicy', name: 'p' }, snapshot },
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
    const scene = await Scene.empty();
    await scene.cluster.admin.create(CLUSTER_ADMISSION_POLICIES, {
      ...policyOf(spec(module)),
      metadata: { ...KEY, annotations: { [ANNOTATIONS.rollbackTo]: rollbackTo } },
    });
    return scene;
  }

  /** A cluster without the policy. */
  static async empty(): Promise<Scene> {
    const cluster = await EmbeddedCluster.open();
    const crds = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    await cluster.admin.create(crds, customResourceDefinition(CLUSTER_ADMISSION_POLICIES));
    return new Scene(cluster);
  }

  /** Server-side apply of a spec. */
  async apply(fieldManager: string, own: object): Promise<AdmissionPolicyObject> {
    const patch = { type: 'apply', body: policyOf(own) as unknown as JsonObject } as const;
    return await this.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, patch, { fieldManager });
  }

  /** Rolls back to revision 1, which has this spec. `through` may fail on the way. */
  async rollBackTo(snapshot: object, through: Cluster = this.cluster.admin): Promise<AdmissionPolicyObject> {
    const body = { metadata: { annotations: { [ANNOTATIONS.rollbackTo]: '1' } } };
    const fieldManager = 'kubectl-annotate';
    const policy: AdmissionPolicyObject = await this.cluster.admin.patch(
      CLUSTER_ADMISSION_POLICIES,
      KEY,
      { type: 'merge', body },
      { fieldManager },
    );
    // Caches drop the field managers.
    const { managedFields: _, ...metadata } = policy.metadata;
    const cached = { ...policy, metadata } as AdmissionPolicyObject;
    const revisions = [revision(1, snapshot)];
    return await rollBack(through, CLUSTER_ADMISSION_POLICIES, cached, revisions, { event: () => 0 }, signal);
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

/** A cluster that rejects patches of a path, like another admission webhook. */
function refusing(cluster: Cluster, code: number, path = '/spec'): Cluster {
  return new Proxy(cluster, {
    get: (target, property) => {
      const member: unknown = Reflect.get(target, property);
      return typeof member !== 'function'
        ? member
        : (...args: unknown[]): unknown =>
            property === 'patch' && JSON.stringify(args[2]).includes(`"${path}"`)
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

describe('fields that a rollback restores', () => {
  const current = { ...spec('https://r/p.wasm'), settings: { level: 2 }, mode: 'protect' };
  const earlier = {
    ...spec('https://r/old.wasm'),
    policyServer: 'default',
    backgroundAudit: true,
    timeoutSeconds: 20,
    settings: { level: 1, deep: { more: true } },
    objectSelector: { matchLabels: { checked: 'yes' } },
    mode: 'monitor',
  };
  /** The managers of the spec, and the fields of each. */
  const ownersOf = ({ metadata }: AdmissionPolicyObject): Record<string, readonly string[]> =>
    Object.fromEntries(
      (metadata.managedFields ?? [])
        .filter(({ fieldsV1 = {} }) => Object.hasOwn(fieldsV1, 'f:spec'))
        .map(({ manager, operation, fieldsV1 = {} }) => [
          `${operation ?? ''} ${manager ?? ''}`,
          Object.keys(fieldsV1['f:spec'] ?? {}).filter((key) => key !== '.'),
        ]),
    );

  it('belong to the manager that applies the spec: its next apply has no conflict, and removes the other fields', async () => {
    await using scene = await Scene.empty();
    await scene.apply('tool', current);
    const after = await scene.rollBackTo(earlier);
    assert.deepEqual(after.spec, { ...earlier, module: `https://r/old.wasm@${DIGEST}` });
    assert.deepEqual(Object.keys(ownersOf(after)), ['Apply tool']);
    const applied = await scene.apply('tool', current);
    assert.deepEqual(applied.spec, { ...current, policyServer: 'default', backgroundAudit: true, timeoutSeconds: 10 });
  });

  it('belong to the managers that owned them before, and new ones to the one that applies most', async () => {
    await using scene = await Scene.empty();
    const { mode: _, ...most } = current;
    await scene.apply('tool', most);
    await scene.apply('small', { mode: 'protect' });
    const edit = { type: 'merge', body: { spec: { timeoutSeconds: 15 } } } as const;
    await scene.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, edit, { fieldManager: 'kubectl-edit' });
    assert.deepEqual(ownersOf(await scene.rollBackTo(earlier)), {
      'Apply small': ['f:mode'],
      'Apply tool': ['f:module', 'f:mutating', 'f:objectSelector', 'f:rules', 'f:settings'],
      'Update kubectl-edit': ['f:timeoutSeconds'],
    });
  });

  it('are returned after an interruption', async () => {
    await using scene = await Scene.empty();
    await scene.apply('tool', current);
    const interrupted = refusing(scene.cluster.admin, 500, '/metadata/managedFields');
    await assert.rejects(scene.rollBackTo(earlier, interrupted), { code: 500 });
    const between = await scene.policy();
    assert.ok('Update portcullis-controller' in ownersOf(between));
    assert.equal(between.metadata.annotations?.[ANNOTATIONS.rollbackTo], '1');
    assert.deepEqual(Object.keys(ownersOf(await scene.rollBackTo(earlier))), ['Apply tool']);
  });

  it('stay with the controller when nobody else owns the spec', async () => {
    await using scene = await Scene.empty();
    const fieldManager = 'portcullis-controller';
    await scene.cluster.admin.create(CLUSTER_ADMISSION_POLICIES, policyOf(current), { fieldManager });
    const after = await scene.rollBackTo(earlier);
    assert.deepEqual(Object.keys(ownersOf(after)), ['Update portcullis-controller']);
    await assert.rejects(scene.apply('tool', current), /conflicts with "portcullis-controller"/);
  });

  it('have no owner in a policy whose owners were removed', async () => {
    await using scene = await Scene.empty();
    await scene.cluster.admin.create(CLUSTER_ADMISSION_POLICIES, policyOf(current));
    const body = { metadata: { managedFields: [{}] } };
    await scene.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, { type: 'merge', body });
    const after = await scene.rollBackTo(earlier);
    assert.equal(after.metadata.managedFields, undefined);
    assert.equal(after.metadata.annotations?.[ANNOTATIONS.rollbackTo], undefined);
  });

  it('are in the copy of client-side apply, without those that others set', async () => {
    await using scene = await Scene.empty();
    const manifest = spec('https://r/p.wasm');
    const lastApplied = JSON.stringify({ ...policyOf(manifest), metadata: { ...KEY, annotations: {} } });
    await scene.cluster.admin.create(
      CLUSTER_ADMISSION_POLICIES,
      { ...policyOf(manifest), metadata: { ...KEY, annotations: { [LAST_APPLIED_ANNOTATION]: lastApplied } } },
      { fieldManager: 'kubectl-client-side-apply' },
    );
    const after = await scene.rollBackTo(earlier);
    const copy = JSON.parse(after.metadata.annotations?.[LAST_APPLIED_ANNOTATION] ?? '') as { spec: object };
    // What the rollback does not change: defaults.
    const { policyServer, backgroundAudit, ...restored } = earlier;
    assert.deepEqual(copy.spec, { ...restored, module: `https://r/old.wasm@${DIGEST}` });
    assert.deepEqual([after.spec.policyServer, after.spec.backgroundAudit], [policyServer, backgroundAudit]);
    assert.deepEqual(Object.keys(ownersOf(after)), ['Update kubectl-client-side-apply']);
  });
});
