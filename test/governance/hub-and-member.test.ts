// The controllers of the hub and of a member cluster, each alone. The hub's clusters are namespaces here.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { GovernanceParts } from '../../src/governance/parts/governance-parts.ts';
import { HubControllers } from '../../src/governance/hub/hub-controllers.ts';
import { MemberControllers } from '../../src/governance/member/member-controllers.ts';
import type { Target, Targets } from '../../src/governance/targets/targets.ts';
import {
  ALL_KINDS,
  customResourceDefinition,
  type JsonObject,
  type ObjectKey,
  type Policy,
} from '../../src/resources/index.ts';
import { EventRecorder, type Runnable, Runtime, SharedCaches } from '../../src/runtime/index.ts';
import { policyOfChecks, templateKind, withWrites } from './governance-lab.ts';
import { LabObjects } from './lab-objects.ts';

const NAMES = ['east', 'north', 'west'];
const MANAGED = { 'app.kubernetes.io/managed-by': 'portcullis' };
const SEEN = { observedGeneration: 1 };

/** The clusters of a test, of which it takes some away. */
class TestTargets implements Targets {
  readonly #listeners = new Set<(root: ObjectKey) => void>();
  #targets: readonly Target[] = NAMES.map((name) => ({ name, namespace: name }));

  of(): readonly Target[] {
    return this.#targets;
  }

  hasCopies(namespace: string): boolean {
    return NAMES.includes(namespace);
  }

  subscribe(listener: (root: ObjectKey) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  remove(name: string, root: ObjectKey): void {
    this.#targets = this.#targets.filter((target) => target.name !== name);
    this.#listeners.forEach((listener) => listener(root));
  }
}

/** A cluster with our kinds, and some controllers. */
class Scene extends LabObjects implements AsyncDisposable {
  /** Writes of the controllers, such as `create policies`. */
  readonly writes: string[] = [];
  readonly #cluster: EmbeddedCluster;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(cluster: EmbeddedCluster) {
    super(cluster.admin);
    this.#cluster = cluster;
  }

  static async start(assemble: (parts: GovernanceParts) => Runnable): Promise<Scene> {
    const scene = new Scene(await EmbeddedCluster.open());
    await scene.apply(...ALL_KINDS.map((kind) => customResourceDefinition(kind)), templateKind('Check', 'Namespaced'));
    await scene.namespace('policies', 'objects');
    const namespaces = NAMES.map((name) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: MANAGED },
    }));
    await scene.apply(...namespaces);
    await scene.#run(assemble);
    return scene;
  }

  async #run(assemble: (parts: GovernanceParts) => Runnable): Promise<void> {
    const log = pino({ level: 'silent' });
    const cluster = withWrites(this.#cluster.admin, async (send, verb) => {
      this.writes.push(verb);
      return await send();
    });
    const caches = new SharedCaches({ cluster, log });
    const events = new EventRecorder({ cluster, component: 'portcullis', log });
    const parts = new GovernanceParts({ cluster, governed: cluster, caches, events, log });
    const controllers = assemble(parts);
    this.#running = new Runtime({ log })
      .add('cache', caches)
      .add('leader', events, parts, controllers)
      .run(this.#stop.signal);
    await Promise.race([controllers.ready, this.#running]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#cluster.close();
  }
}

const hubOf =
  (targets: Targets) =>
  (parts: GovernanceParts): Runnable =>
    new HubControllers({
      parts,
      targets,
      governed: { namespaces: undefined, exemptNamespaces: [] },
      clusterNamespace: '',
    });

/** The rows of a root: `name=compliance`. */
const rowsOf = ({ status }: { readonly status?: unknown }): readonly string[] =>
  ((status as Policy['status'])?.status ?? []).map(
    ({ clustername = '', compliant = 'unknown' }) => `${clustername}=${compliant}`,
  );

const ROOT = { kind: 'Policy', name: 'policies/kafka' };
const copyOn = (namespace: string) => ({ kind: 'Policy', name: `${namespace}/policies.kafka` });

describe('the controllers of a hub alone', () => {
  it('copy a Policy to each of its clusters, and sum up what the copies report', async () => {
    const targets = new TestTargets();
    await using scene = await Scene.start(hubOf(targets));
    await scene.apply(policyOfChecks('kafka', ['ready']));
    for (const name of NAMES) {
      const { metadata } = await scene.appears(copyOn(name));
      assert.equal(metadata.labels?.['policy.open-cluster-management.io/cluster-name'], name);
    }
    await scene.sees(
      ROOT,
      (root) => root !== undefined && rowsOf(root).join() === 'east=unknown,north=unknown,west=unknown',
    );
    assert.deepEqual(await scene.list('Check', 'lab.example.com/v1'), [], 'the hub applies nothing');

    await scene.setStatus(copyOn('east'), { compliant: 'Compliant', ...SEEN });
    await scene.setStatus(copyOn('west'), { compliant: 'Compliant', ...SEEN });
    const silent = await scene.sees(
      ROOT,
      (root) => root !== undefined && rowsOf(root).join() === 'east=Compliant,north=unknown,west=Compliant',
    );
    assert.equal(silent.status?.compliant, undefined, 'what is not known is not Compliant');

    await scene.setStatus(copyOn('north'), { compliant: 'Pending', ...SEEN });
    await scene.reaches(ROOT.name, 'Pending');
    await scene.setStatus(copyOn('west'), { compliant: 'NonCompliant', ...SEEN });
    const { status } = await scene.reaches(ROOT.name, 'NonCompliant');
    assert.equal(status?.message, 'NonCompliant on west; Pending on north');

    targets.remove('west', { namespace: 'policies', name: 'kafka' });
    await scene.disappears(copyOn('west'));
    const root = await scene.reaches(ROOT.name, 'Pending');
    assert.deepEqual(rowsOf(root), ['east=Compliant', 'north=Pending']);

    await scene.delete(ROOT);
    await scene.disappears(copyOn('east'));
    await scene.disappears(copyOn('north'));
  });

  it('write other clusters although the namespace of one belongs to others', async () => {
    await using scene = await Scene.start(hubOf(new TestTargets()));
    await scene.merge(
      { kind: 'Namespace', name: 'north' },
      { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } },
    );
    await scene.apply(policyOfChecks('kafka', ['ready']));
    const root = await scene.sees(ROOT, (one) => JSON.stringify(one?.status).includes('ClusterNamespaceNotOurs'));
    assert.equal(root.status?.compliant, undefined);
    assert.equal(await scene.get(copyOn('north')), undefined);
    await scene.merge({ kind: 'Namespace', name: 'north' }, { metadata: { labels: MANAGED } });
    await scene.appears(copyOn('north'));
  });

  it('restore a copy that was edited, at the cost of one write', async () => {
    await using scene = await Scene.start(hubOf(new TestTargets()));
    await scene.apply(policyOfChecks('kafka', ['ready']));
    for (const name of NAMES) {
      await scene.appears(copyOn(name));
    }
    await scene.sees(ROOT, (root) => root !== undefined && rowsOf(root).length === NAMES.length);
    const isSpecWrite = (verb: string): boolean => verb === 'create policies' || verb === 'update policies';
    scene.writes.length = 0;
    await scene.merge(copyOn('east'), { spec: { disabled: true } });
    await scene.sees(copyOn('east'), (copy) => copy?.spec?.['disabled'] === false);
    assert.equal(scene.writes.filter(isSpecWrite).length, 1);
  });

  it('write the status of a root a few times, though all of its clusters report at once', async () => {
    await using scene = await Scene.start(hubOf(new TestTargets()));
    await scene.apply(policyOfChecks('kafka', ['ready']));
    for (const name of NAMES) {
      await scene.appears(copyOn(name));
    }
    await scene.sees(ROOT, (root) => root !== undefined && rowsOf(root).length === NAMES.length);
    scene.writes.length = 0;
    for (const compliant of ['Pending', 'NonCompliant', 'Compliant']) {
      for (const name of NAMES) {
        await scene.setStatus(copyOn(name), { compliant, ...SEEN });
      }
    }
    await scene.reaches(ROOT.name, 'Compliant');
    assert.ok(scene.writes.length <= 3, `nine changes gave the writes ${scene.writes.join()}`);
  });
});

describe('the controllers of a member cluster alone', () => {
  const configMapPolicy = (name: string, dependencies: JsonObject[] = []): JsonObject => ({
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'Policy',
    metadata: {
      namespace: 'east',
      name: `policies.${name}`,
      labels: { 'policy.open-cluster-management.io/root-policy': `policies.${name}` },
    },
    spec: {
      disabled: false,
      remediationAction: 'enforce',
      dependencies,
      'policy-templates': [
        {
          objectDefinition: {
            apiVersion: 'policy.open-cluster-management.io/v1',
            kind: 'ConfigurationPolicy',
            metadata: { name },
            spec: {
              remediationAction: 'inform',
              severity: 'low',
              'object-templates': [
                {
                  complianceType: 'musthave',
                  objectDefinition: {
                    apiVersion: 'v1',
                    kind: 'ConfigMap',
                    metadata: { name, namespace: 'objects' },
                    data: { from: 'policy' },
                  },
                },
              ],
            },
          },
        },
      ],
    },
  });

  it('enforce a copy and write its status; the root stays as it is', async () => {
    await using scene = await Scene.start((parts) => new MemberControllers({ parts, namespace: 'east' }));
    // A Policy of that name on the same API server, which a member has no business with.
    await scene.apply(policyOfChecks('web', ['other']));
    const before = await scene.get({ kind: 'Policy', name: 'policies/web' });
    await scene.apply(configMapPolicy('web'));
    const copy = await scene.reaches('east/policies.web', 'Compliant');
    assert.deepEqual(
      copy.status?.details?.map(({ templateMeta, compliant }) => [templateMeta?.name, compliant]),
      [['web', 'Compliant']],
    );
    const { data } = await scene.appears({ kind: 'ConfigMap', name: 'objects/web' });
    assert.deepEqual(data, { from: 'policy' });
    assert.deepEqual(await scene.get({ kind: 'Policy', name: 'policies/web' }), before);
    assert.ok(!scene.writes.some((verb) => /create policies|create namespaces/.test(verb)), scene.writes.join());
  });

  it('wait for dependencies by the statuses of their own copies, and see their cycles', async () => {
    await using scene = await Scene.start((parts) => new MemberControllers({ parts, namespace: 'east' }));
    const on = (name: string): JsonObject => ({
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'Policy',
      name: `policies.${name}`,
      compliance: 'Compliant',
    });
    await scene.apply(configMapPolicy('app', [on('base')]));
    const waiting = await scene.reaches('east/policies.app', 'Pending');
    assert.equal(waiting.status?.pending?.[0]?.reason, 'NotFound');
    await scene.apply(configMapPolicy('base'));
    await scene.reaches('east/policies.app', 'Compliant');
    await scene.apply(configMapPolicy('one', [on('two')]), configMapPolicy('two', [on('one')]));
    const isCycle = (status: unknown): boolean => JSON.stringify(status ?? {}).includes('"reason":"Cycle"');
    await scene.sees({ kind: 'Policy', name: 'east/policies.one' }, (one) => isCycle(one?.status));
  });
});
