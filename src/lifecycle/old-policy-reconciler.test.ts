import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { ApiError, type Cluster, EmbeddedCluster } from '../cluster/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  type ClusterAdmissionPolicy,
  customResourceDefinition,
  kubernetesKind,
  type KubernetesObject,
  OWN_KINDS,
  type ResourceType,
} from '../resources/index.ts';
import { aborted, ObjectCache } from '../runtime/index.ts';
import type { PolicyStatus } from '../server/index.ts';
import type { AdmissionPolicyObject } from '../resources/index.ts';
import { PolicyReconciler } from './old-policy-reconciler.ts';
import type { PolicySet } from './policy-set.ts';

const KEY = { name: 'p' };

function builtin(apiVersion: string, kind: string): ResourceType {
  const type = kubernetesKind(apiVersion, kind);
  assert.ok(type);
  return type;
}

const VALIDATING = builtin('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration');
const MUTATING = builtin('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration');

/** A cluster with a policy, and a reconciler whose caches saw it at the start and nothing since. */
class Scene implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly told: string[] = [];
  readonly reconciler: PolicyReconciler;
  readonly #stop = new AbortController();
  readonly #caches: readonly ObjectCache[];
  readonly #running: readonly Promise<void>[];

  private constructor(embedded: EmbeddedCluster, cluster: Cluster) {
    this.cluster = embedded;
    const deaf: Pick<Cluster, 'list' | 'watch'> = {
      list: (type, options) => embedded.admin.list(type, options),
      // eslint-disable-next-line require-yield
      async *watch(_type, options) {
        await aborted(options?.signal ?? new AbortController().signal);
      },
    };
    const cacheOf = <T extends KubernetesObject>(type: ResourceType<T>): ObjectCache<T> =>
      new ObjectCache({ cluster: deaf, type, log: pino({ level: 'silent' }) });
    const policies = cacheOf<AdmissionPolicyObject>(CLUSTER_ADMISSION_POLICIES);
    const [validating, mutating] = [cacheOf(VALIDATING), cacheOf(MUTATING)];
    this.#caches = [policies as unknown as ObjectCache, validating, mutating];
    this.#running = this.#caches.map((cache) => cache.start(this.#stop.signal));
    const status = { phase: 'Active', reason: 'Serving', message: '', mode: 'protect', serving: {} };
    const set: PolicySet = {
      replace: () => Promise.resolve(),
      put: () => Promise.resolve(),
      remove: () => Promise.resolve(),
      get: () => ({ generation: 1, status: status as unknown as PolicyStatus }),
    };
    this.reconciler = new PolicyReconciler(CLUSTER_ADMISSION_POLICIES, {
      cluster,
      policies,
      validating,
      mutating,
      set,
      target: { url: 'https://localhost:8443', ca: 'PEM' },
      events: { event: (_object, type, reason) => this.told.push(`${type} ${reason}`) },
    });
  }

  static async open(through: (cluster: Cluster) => Cluster = (cluster) => cluster): Promise<Scene> {
    const embedded = await EmbeddedCluster.open();
    const crds = builtin('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    for (const kind of OWN_KINDS.filter(({ kind: name }) => name === 'ClusterAdmissionPolicy')) {
      await embedded.admin.create(crds, customResourceDefinition(kind));
    }
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
    await embedded.admin.create<KubernetesObject & { spec: unknown }>(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: KEY,
      spec: { module: 'builtin:pod-security', mutating: false, rules },
    });
    const scene = new Scene(embedded, through(embedded.admin));
    await Promise.all(scene.#caches.map(({ synced }) => synced));
    return scene;
  }

  policy(): Promise<ClusterAdmissionPolicy> {
    return this.cluster.admin.get(CLUSTER_ADMISSION_POLICIES, KEY);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
    await this.cluster.close();
  }
}

/** A cluster that refuses webhook configurations. */
function refusing(code: 403 | 422): (cluster: Cluster) => Cluster {
  return (cluster) =>
    new Proxy(cluster, {
      get: (target, property) =>
        property === 'patch'
          ? (...args: Parameters<Cluster['patch']>) =>
              args[0].group === 'admissionregistration.k8s.io'
                ? Promise.reject(new ApiError(code, code === 403 ? 'Forbidden' : 'Invalid', 'not these'))
                : target.patch(...args)
          : (Reflect.get(target, property) as unknown),
    });
}

describe('PolicyReconciler', () => {
  const { signal } = new AbortController();

  it('writes and tells nothing twice while its caches are behind', async () => {
    await using scene = await Scene.open();
    await scene.reconciler.reconcile(KEY, signal);
    assert.equal((await scene.policy()).status?.phase, 'Active');
    const { revision } = scene.cluster;
    await scene.reconciler.reconcile(KEY, signal);
    assert.equal(scene.cluster.revision, revision);
    assert.deepEqual(scene.told, ['Normal Serving']);
  });

  it('says that a configuration was refused, and does not insist', async () => {
    await using scene = await Scene.open(refusing(422));
    await scene.reconciler.reconcile(KEY, signal);
    const { status } = await scene.policy();
    assert.deepEqual([status?.phase, status?.reason, status?.message], ['Error', 'WebhookRefused', 'not these']);
    assert.deepEqual(scene.told, ['Warning WebhookRefused']);
  });

  it('says that it may not write configurations, and tries again', async () => {
    await using scene = await Scene.open(refusing(403));
    await assert.rejects(scene.reconciler.reconcile(KEY, signal), { name: 'ApiError', code: 403 });
    assert.equal((await scene.policy()).status?.reason, 'WebhookRefused');
  });
});
