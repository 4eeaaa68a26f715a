import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { type Cluster, unlessGone } from '../cluster/index.ts';
import { SharedCaches } from '../runtime/index.ts';
import { knownKind, type KubernetesObject, type ResourceType } from '../resources/index.ts';
import { GOVERNANCE_CONTROLLER_RULES } from './access-rules/governance-rules.ts';
import { isRunning, OtherControllers } from './other-controllers.ts';
import { OTHER_CONTROLLERS } from './access-rules/governance-rules.ts';
import { until } from './testing/until.ts';

const DEPLOYMENTS = knownKind('apps/v1', 'Deployment');
const RBAC = 'rbac.authorization.k8s.io';
const [PROPAGATOR = ''] = OTHER_CONTROLLERS;

function deployment(name: string, replicas: number): KubernetesObject {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace: 'default', name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'main' }] } },
    },
  };
}

/** A cluster as the controller sees it, with the rights of its rules. */
class Scene implements AsyncDisposable {
  readonly admin: Cluster;
  readonly events: string[] = [];
  /** What `run` did: started, or stopped. */
  readonly runs: string[] = [];
  blocked = 0;
  readonly others: OtherControllers;
  readonly registry = new Registry();
  readonly #cluster: EmbeddedCluster;
  readonly #caches: SharedCaches;
  readonly #stop = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #watched: Promise<void> = Promise.resolve();

  private constructor(cluster: EmbeddedCluster) {
    this.#cluster = cluster;
    this.admin = cluster.admin;
    const log = pino({ level: 'silent' });
    this.#caches = new SharedCaches({
      cluster: cluster.as({ username: 'controller', groups: ['system:authenticated'] }),
      log,
    });
    this.others = new OtherControllers({
      caches: this.#caches,
      events: { event: (object, type, reason) => this.events.push(`${type} ${reason} ${object.metadata.name ?? ''}`) },
      log,
      registry: this.registry,
    });
  }

  static async open(): Promise<Scene> {
    const scene = new Scene(await EmbeddedCluster.open());
    const create = (type: ResourceType | undefined, object: KubernetesObject): Promise<unknown> =>
      scene.admin.create(type ?? assert.fail(object.kind), object);
    const apiVersion = `${RBAC}/v1`;
    const metadata = { name: 'controller' };
    await create(knownKind(apiVersion, 'ClusterRole'), {
      apiVersion,
      kind: 'ClusterRole',
      metadata,
      rules: GOVERNANCE_CONTROLLER_RULES,
    });
    await create(knownKind(apiVersion, 'ClusterRoleBinding'), {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'controller' },
      subjects: [{ apiGroup: RBAC, kind: 'User', name: 'controller' }],
    });
    return scene;
  }

  /** As a replica that does not lead. */
  watch(): void {
    this.#watched = this.#caches.start(this.#stop.signal);
  }

  start(): void {
    this.watch();
    const run = async (alone: AbortSignal): Promise<void> => {
      this.runs.push('started');
      await new Promise((resolve) => alone.addEventListener('abort', resolve, { once: true }));
      this.runs.push('stopped');
    };
    this.#ended = this.others.whileNone(this.#stop.signal, run, () => {
      this.blocked += 1;
    });
  }

  async scale(name: string, replicas: number): Promise<void> {
    await this.admin.patch(
      DEPLOYMENTS,
      { namespace: 'default', name },
      { type: 'merge', body: { spec: { replicas } } },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ended;
    await this.#watched;
    await this.#cluster.close();
  }
}

describe('beside controllers of Open Cluster Management, governance', () => {
  it('runs where there is none, or one without replicas, whatever other Deployments run', async () => {
    await using scene = await Scene.open();
    await scene.admin.create(DEPLOYMENTS, deployment('other', 1));
    await scene.admin.create(DEPLOYMENTS, deployment(PROPAGATOR, 0));
    scene.start();
    await until(() => scene.runs.length > 0);
    assert.deepEqual([scene.events, scene.blocked], [[], 0]);
  });

  it('does not start until the last of them is gone, and reports each once', async () => {
    await using scene = await Scene.open();
    for (const name of OTHER_CONTROLLERS) {
      await scene.admin.create(DEPLOYMENTS, deployment(name, 1));
    }
    scene.start();
    await until(() => scene.blocked > 0);
    assert.equal(scene.others.running().length, OTHER_CONTROLLERS.length);
    for (const name of OTHER_CONTROLLERS) {
      assert.deepEqual(scene.runs, []);
      await unlessGone(scene.admin.delete(DEPLOYMENTS, { namespace: 'default', name }));
    }
    await until(() => scene.runs.length > 0);
    assert.deepEqual(
      scene.events.toSorted(),
      OTHER_CONTROLLERS.map((name) => `Warning GovernanceStopped ${name}`).toSorted(),
    );
  });

  it('is known to stop in replicas that do not lead, which check what is applied, and in their metrics', async () => {
    await using scene = await Scene.open();
    await scene.admin.create(DEPLOYMENTS, deployment(PROPAGATOR, 1));
    scene.watch();
    await until(() => scene.others.running().length === 1);
    assert.match(await scene.registry.metrics(), /^portcullis_governance_other_controllers 1$/m);
    assert.deepEqual(scene.events, []);
    await scene.scale(PROPAGATOR, 0);
    await until(() => scene.others.running().length === 0);
  });

  it('stops when one appears, and continues when it has no replicas', async () => {
    await using scene = await Scene.open();
    scene.start();
    await until(() => scene.runs.length === 1);
    await scene.admin.create(DEPLOYMENTS, deployment(PROPAGATOR, 2));
    await until(() => scene.runs.length === 2 && scene.blocked === 1);
    await scene.scale(PROPAGATOR, 0);
    await until(() => scene.runs.length === 3);
    assert.deepEqual(scene.runs, ['started', 'stopped', 'started']);
    assert.equal(scene.events.length, 1);
  });
});

describe('a Deployment runs', () => {
  for (const [spec, status, expected] of [
    [{}, {}, true],
    [{ replicas: 1 }, {}, true],
    [{ replicas: 0 }, {}, false],
    [{ replicas: 0 }, { replicas: 0 }, false],
    // Its pods end.
    [{ replicas: 0 }, { replicas: 1 }, true],
  ] as const) {
    it(`${JSON.stringify(spec)} ${JSON.stringify(status)}: ${expected}`, () => {
      const object = { ...deployment(PROPAGATOR, 0), spec, status };
      assert.equal(isRunning(object), expected);
    });
  }
});
