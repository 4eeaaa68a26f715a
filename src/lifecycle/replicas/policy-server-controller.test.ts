import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { findCondition, POLICY_SERVERS } from '../../resources/index.ts';
import type { PolicyServerObject } from '../../resources/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import type { PolicyServerReport, PolicyServerReports } from '../policy-servers/policy-server-conditions.ts';
import { policyServerStatus, PolicyServerController } from './policy-server-controller.ts';
import type { KnownReplica } from './replica-directory.ts';
import { eventually, HubScene, TestCertificates } from './testing/hub-scene.ts';

let certificates: TestCertificates;
before(async () => {
  certificates = await TestCertificates.create();
});
after(() => certificates[Symbol.asyncDispose]());

/** A scene with the controller, which counts writes. */
async function withController(
  body: (scene: HubScene, written: { count: number }) => Promise<void>,
  objects?: PolicyServerReports,
): Promise<void> {
  const written = { count: 0 };
  const through = (cluster: Cluster): Cluster =>
    new Proxy(cluster, {
      get(target, property) {
        written.count += property === 'patch' ? 1 : 0;
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  await using scene = await HubScene.open(certificates, { through });
  const controller = new PolicyServerController({
    cluster: through(scene.cluster.admin),
    caches: scene.caches,
    replicas: scene.hub,
    log: scene.log,
    ...(objects === undefined ? {} : { objects }),
  });
  const stop = new AbortController();
  const running = controller.start(stop.signal);
  try {
    await body(scene, written);
  } finally {
    stop.abort();
    await running;
  }
}

async function statusOf(scene: HubScene): Promise<string> {
  const { status } = await scene.cluster.admin.get<PolicyServerObject>(POLICY_SERVERS, { name: 'default' });
  const [condition] = status?.conditions ?? [];
  return `${status?.readyReplicas}/${status?.totalReplicas} ${condition?.status} ${condition?.reason}`;
}

describe('PolicyServerController', { timeout: 20_000 }, () => {
  it('reports the number of replicas as they come and go', async () => {
    await withController(async (scene, written) => {
      await scene.policyServer('default', 2);
      await scene.lead();
      await eventually(async () => (await statusOf(scene)) === '0/0 False NoReplicaConnected');
      const one = await scene.replica('r1');
      await eventually(async () => (await statusOf(scene)) === '1/1 False ReplicasMissing');
      await scene.replica('r2');
      await eventually(async () => (await statusOf(scene)) === '2/2 True AllReplicasConnected');
      const foreign = { status: { readyReplicas: 7, totalReplicas: 7 } };
      const options = { subresource: 'status' };
      await scene.cluster.admin.patch(POLICY_SERVERS, { name: 'default' }, { type: 'merge', body: foreign }, options);
      await eventually(async () => (await statusOf(scene)) === '2/2 True AllReplicasConnected');
      one.isSilent = true;
      await eventually(async () => (await statusOf(scene)) === '1/2 False ReplicasMissing');
      await scene.remove('r1');
      await eventually(async () => (await statusOf(scene)) === '1/1 False ReplicasMissing');
      written.count = 0;
      // Leadership changes, but replicas do not.
      await scene.resign();
      await scene.lead();
      await scene.see('r2=connected');
      await sleep(150);
      assert.equal(written.count, 0);
    });
  });
});

/** Reports on objects that a test sets. */
class Reports implements PolicyServerReports {
  readonly ours = new Set<string>();
  readonly #reports = new Map<string, PolicyServerReport>();
  readonly #listeners = new Set<(policyServer: string) => void>();

  isOurs(policyServer: string): boolean {
    return this.ours.has(policyServer);
  }

  report(policyServer: string): PolicyServerReport | undefined {
    return this.#reports.get(policyServer);
  }

  subscribe(listener: (policyServer: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(policyServer: string, report: PolicyServerReport): void {
    this.#reports.set(policyServer, report);
    for (const listener of this.#listeners) {
      listener(policyServer);
    }
  }
}

describe('PolicyServerController, with objects of PolicyServers', { timeout: 20_000 }, () => {
  const condition = { type: 'DeploymentReconciled', status: 'False', reason: 'NameTaken', message: 'taken' } as const;
  const report: PolicyServerReport = { generation: 1, image: 'own', moduleCache: 'hostPath', conditions: [condition] };

  it('reports on its objects, and ignores PolicyServers of other controllers', async () => {
    const objects = new Reports();
    objects.ours.add('default');
    await withController(async (scene) => {
      await scene.policyServer('default', 1);
      await scene.policyServer('foreign', 1);
      await scene.lead();
      await eventually(async () => (await statusOf(scene)) === '0/0 False NoReplicaConnected');
      const of = (name: string): Promise<PolicyServerObject> =>
        scene.cluster.admin.get<PolicyServerObject>(POLICY_SERVERS, { name });
      objects.set('default', report);
      objects.set('foreign', report);
      await eventually(async () => (await of('default')).status?.image === 'own');
      const { status } = await of('default');
      assert.equal(status?.moduleCache, 'hostPath');
      const ready = findCondition(status?.conditions, 'Ready');
      const deployment = findCondition(status?.conditions, 'DeploymentReconciled');
      assert.equal(ready?.message, '0 of 1 replicas answer; taken');
      assert.deepEqual(
        [deployment?.type, deployment?.status, deployment?.reason, deployment?.observedGeneration],
        ['DeploymentReconciled', 'False', 'NameTaken', 1],
      );
      assert.deepEqual((await of('foreign')).status, { observedGeneration: -1 });
      objects.set('default', { ...report, conditions: [{ ...condition, status: 'True', reason: 'R', message: '' }] });
      await eventually(
        async () => findCondition((await of('default')).status?.conditions, 'DeploymentReconciled')?.status === 'True',
      );
      assert.equal((await of('default')).status?.conditions?.[0]?.message, '0 of 1 replicas answer');
    }, objects);
  });
});

describe('the status of a PolicyServer', { timeout: 20_000 }, () => {
  it('has texts that control no terminal', async () => {
    const objects = new Reports();
    objects.ours.add('default');
    objects.set('default', {
      generation: 1,
      image: 'evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt',
      moduleCache: 'hostPath',
      conditions: [],
    });
    await withController(async (scene) => {
      await scene.policyServer('default', 1);
      await scene.lead();
      const of = (): Promise<PolicyServerObject> =>
        scene.cluster.admin.get<PolicyServerObject>(POLICY_SERVERS, { name: 'default' });
      await eventually(async () => (await of()).status?.image !== undefined);
      assert.equal((await of()).status?.image, 'evil\u{fffd}[2J\u{fffd}]8;;a:b\u{fffd}2J\u{fffd}txt');
    }, objects);
  });
});

describe('policyServerStatus', () => {
  const server = (replicas: number): Pick<PolicyServerObject, 'metadata' | 'spec'> => ({
    metadata: { name: 'default', generation: 3 },
    spec: { image: 'i', replicas },
  });
  const replicas = (...states: KnownReplica['state'][]): { name: string; state: KnownReplica['state'] }[] =>
    states.map((state, index) => ({ name: `r${index}`, state }));

  it('keeps conditions of other controllers', () => {
    const other = { type: 'Other', status: 'True', reason: 'R', message: '', lastTransitionTime: 't' } as const;
    const status = policyServerStatus(server(1), replicas('connected'), { conditions: [other] }, 0);
    assert.deepEqual(
      status.conditions?.map(({ type }) => type),
      ['Other', 'Ready'],
    );
    assert.equal(status.observedGeneration, 3);
  });

  it('names the replicas that are not connected', () => {
    const few = policyServerStatus(server(1), replicas('connected', 'lost', 'connecting'), {}, 0);
    assert.equal(few.conditions?.[0]?.message, '1 of 3 replicas answers; not: r1, r2');
    const many = policyServerStatus(server(1), replicas(...Array.from({ length: 15 }, () => 'lost' as const)), {}, 0);
    assert.match(many.conditions?.[0]?.message ?? '', /^0 of 15 replicas answer; not: r0, .*r9 and 5 more$/);
  });

  it('names replicas whose clocks differ, while they do', () => {
    const clock = (name: string, clockOffsetMs?: number) => ({ name, state: 'connected', clockOffsetMs }) as const;
    const skewed = policyServerStatus(
      server(3),
      [clock('a', 61_000), clock('b', 0), clock('c', -30_000), clock('d')],
      {},
      0,
    );
    const { status, reason, message } = findCondition(skewed.conditions, 'ClocksAgree') ?? {};
    assert.deepEqual([status, reason], ['False', 'ClockSkew']);
    assert.match(message ?? '', /earlier or later there: a by \+61 s, c by -30 s$/);
    assert.equal(findCondition(skewed.conditions, 'Ready')?.status, 'True');
    const agreed = policyServerStatus(server(1), [clock('a', 0)], skewed, 0);
    assert.equal(findCondition(agreed.conditions, 'ClocksAgree'), undefined);
  });

  describe('has the conditions of kstatus', () => {
    const ok: PolicyServerReport = {
      generation: 3,
      image: 'own',
      moduleCache: 'emptyDir',
      conditions: [{ type: 'ServiceReconciled', status: 'True', reason: 'ReconciliationSucceeded', message: '' }],
    };
    const bad = (type: string, reason: string): Partial<PolicyServerReport> => ({
      conditions: [{ type, status: 'False', reason, message: 'why' }],
    });
    const failure = { state: 'stalled', reason: 'ReconcileFailed', message: 'too large' } as const;
    for (const [when, states, report, expected] of [
      ['all is well', ['connected'], {}, 'Ready=True AllReplicasConnected 3'],
      ['a replica is missing', ['lost'], {}, 'Ready=False NoReplicaConnected 3, Reconciling=True'],
      [
        'an object was not taken',
        ['connected'],
        bad('ServiceReconciled', 'ReconciliationFailed'),
        'Ready=False ReconciliationFailed 3, Reconciling=True',
      ],
      [
        'a name is taken',
        ['connected'],
        bad('ServiceReconciled', 'NameTaken'),
        'Ready=False NameTaken 3, Stalled=True',
      ],
      [
        'pods cannot be created',
        ['lost'],
        bad('DeploymentReconciled', 'PodsNotCreated'),
        'Ready=False NoReplicaConnected 3, Stalled=True',
      ],
      [
        'a Secret is not written',
        ['connected'],
        bad('CertSecretReconciled', 'CertificateNotWritten'),
        'Ready=False CertificateNotWritten 3, Reconciling=True',
      ],
      [
        'rights are missing',
        ['connected'],
        bad('ContextAwareAccessGranted', 'NotGranted'),
        'Ready=True AllReplicasConnected 3',
      ],
      ['the reconciliation failed', ['connected'], { failure }, 'Ready=False ReconcileFailed 3, Stalled=True'],
      [
        'the objects are of an older spec',
        ['connected'],
        { generation: 2 },
        'Ready=False ApplyingChanges 2, Reconciling=True',
      ],
      ['pods are being replaced', ['connected'], { rollout: '0 of 1' }, 'Ready=False RollingOut 3, Reconciling=True'],
    ] as const satisfies readonly (readonly [string, KnownReplica['state'][], Partial<PolicyServerReport>, string])[]) {
      it(`when ${when}`, () => {
        const objects = { report: { ...ok, ...report } };
        const { conditions, observedGeneration } = policyServerStatus(server(1), replicas(...states), {}, 0, objects);
        const { status, reason } = findCondition(conditions, 'Ready') ?? {};
        const abnormal = ['Reconciling', 'Stalled'].flatMap((type) => {
          const found = findCondition(conditions, type);
          return found === undefined ? [] : [`${type}=${found.status}`];
        });
        assert.equal([`Ready=${status} ${reason} ${observedGeneration}`, ...abnormal].join(', '), expected);
      });
    }

    it('and counts ready pods, not processes that are connected before their pods are ready', () => {
      const readyReplicas = (readyPods?: number): number | undefined =>
        policyServerStatus(server(2), replicas('connected', 'connected'), {}, 0, { report: { ...ok, readyPods } })
          .readyReplicas;
      assert.deepEqual([readyReplicas(), readyReplicas(1), readyReplicas(0)], [2, 1, 0]);
    });

    it('and observes no generation before its objects are applied', () => {
      const status = policyServerStatus(server(1), replicas('connected'), {}, 0, { report: undefined });
      assert.equal(status.observedGeneration, undefined);
      const unseen = { observedGeneration: -1 };
      const first = policyServerStatus(server(1), replicas('connected'), unseen, 0, { report: undefined });
      assert.equal(first.observedGeneration, -1);
      assert.deepEqual(new Set(first.conditions?.map((condition) => condition.observedGeneration)), new Set([0]));
    });
  });
});
