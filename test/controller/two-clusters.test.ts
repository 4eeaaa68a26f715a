// One process controls two clusters, each with caches, events, metrics and statuses of its own.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import type { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { assembleController } from '../../src/controller/index.ts';
import { DEFAULT_ROLLOUT_SETTINGS } from '../../src/lifecycle/index.ts';
import { pageText } from '../../src/metrics/index.ts';
import { POLICY_SERVERS } from '../../src/resources/index.ts';
import { type ControlledCluster, controlledCluster, EVENTS } from '../../src/runtime/index.ts';
import { kind, type Policy } from '../lifecycle/policy-lab.ts';
import { type TestServer, until } from '../server/harness.ts';
import { NAMESPACE, openCluster, requiresLabel, startReplica } from '../server/replica-lab.ts';

const POLICY_TYPE = kind<Policy>('policies.kubewarden.io/v1', 'ClusterAdmissionPolicy');
const log = pino({ level: 'silent' });

/** A cluster, its policy server, and its controllers in this process. */
class ControlledLab {
  readonly cluster: EmbeddedCluster;
  readonly controlled: ControlledCluster;
  readonly #server: TestServer;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  private constructor(cluster: EmbeddedCluster, server: TestServer, name: string) {
    this.cluster = cluster;
    this.#server = server;
    this.controlled = controlledCluster({ name, cluster: cluster.admin, log });
    const { controlCertFile: certFile, controlKeyFile: keyFile, caFile } = server.folder.certificates;
    const { runtime } = assembleController({
      controlled: this.controlled,
      namespace: NAMESPACE,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      tls: { certFile, keyFile, caFile },
      copies: 'durable',
      servers: () => ({
        url: server.addresses.admission.replace('127.0.0.1', 'localhost'),
        ca: readFileSync(caFile, 'utf8'),
      }),
      identities: [],
    });
    this.#ended = runtime.run(this.#stop.signal);
  }

  static async start(name: string): Promise<ControlledLab> {
    const cluster = await openCluster();
    await cluster.admin.create(POLICY_SERVERS, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: 'default' },
      spec: { image: 'portcullis', replicas: 1 },
    });
    return new ControlledLab(cluster, await startReplica({ cluster: cluster.admin, workers: 1 }), name);
  }

  async apply(name: string, label: string): Promise<void> {
    await this.cluster.admin.create(POLICY_TYPE, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: POLICY_TYPE.kind,
      metadata: { name },
      spec: requiresLabel(label, {
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      }),
    });
  }

  async status(name: string): Promise<Policy['status']> {
    return (await this.cluster.admin.get(POLICY_TYPE, { name })).status;
  }

  async isActive(name: string): Promise<void> {
    await until(
      async () => (await this.status(name))?.phase === 'Active',
      () => `${name} to be Active`,
    );
  }

  /** The names of what the events of the cluster are about. */
  async eventSubjects(): Promise<readonly string[]> {
    const { items } = await this.cluster.admin.list(EVENTS);
    return [
      ...new Set(items.map((event) => (event as unknown as { involvedObject: { name: string } }).involvedObject.name)),
    ];
  }

  async stopControllers(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopControllers();
    await this.#server[Symbol.asyncDispose]();
    await this.cluster.close();
  }
}

describe('the controllers of two clusters in one process', () => {
  let east: ControlledLab;
  let west: ControlledLab;

  before(async () => {
    [east, west] = await Promise.all([ControlledLab.start('east'), ControlledLab.start('west')]);
    await Promise.all([east.apply('in-east', 'owner'), west.apply('in-west', 'team')]);
    await Promise.all([east.isActive('in-east'), west.isActive('in-west')]);
  });

  after(async () => {
    await east[Symbol.asyncDispose]();
    await west[Symbol.asyncDispose]();
  });

  it('write events into their own cluster only', async () => {
    for (const [lab, own] of [
      [east, 'in-east'],
      [west, 'in-west'],
    ] as const) {
      await until(
        async () => (await lab.eventSubjects()).includes(own),
        () => `events of ${own}`,
      );
      assert.ok((await lab.eventSubjects()).every((name) => !name.startsWith('in-') || name === own));
    }
  });

  it('count in metrics of their own, which one page tells apart', async () => {
    const text = await pageText([east.controlled, west.controlled]);
    const series = text.split('\n').filter((line) => line.startsWith('controller_runtime_reconcile_total{'));
    assert.ok(
      series.some((line) => line.includes('cluster="east"')),
      text.slice(0, 400),
    );
    assert.ok(series.some((line) => line.includes('cluster="west"')));
    assert.equal(text.match(/^# TYPE controller_runtime_reconcile_total /gm)?.length, 1);
    assert.match(text, /^portcullis_policies\{cluster="east",[^}]*\} 1$/m);
    assert.doesNotMatch(await pageText([{ registry: east.controlled.registry }]), /west/);
  });

  it('go on when those of the other cluster have ended', async () => {
    await east.stopControllers();
    await Promise.all([east.apply('late', 'owner'), west.apply('late', 'team')]);
    await west.isActive('late');
    assert.notEqual((await east.status('late'))?.phase, 'Active');
  });
});
