import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import type { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, isNotFound } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { knownKind, POLICY_SERVER_REPLICAS } from '../../resources/index.ts';
import type { KubernetesObject, OwnerReference, PolicyServerReplica } from '../../resources/index.ts';
import { LEASES, SYSTEM_CLOCK } from '../../runtime/index.ts';
import type { Clock, Lease } from '../../runtime/index.ts';
import { until } from '../testing/until.ts';
import { removeDeparted } from './departed-replica.ts';
import { NAMESPACE, openCluster, TEST_TIMING } from './testing/hub-scene.ts';

const PODS = knownKind('v1', 'Pod');

let embedded: EmbeddedCluster;
// The tested timers do not keep the process alive.
let alive: NodeJS.Timeout;
before(async () => {
  alive = setInterval(() => undefined, 1000);
  embedded = await openCluster();
});
after(async () => {
  clearInterval(alive);
  await embedded[Symbol.asyncDispose]();
});

/**
 * A replica with this owner. The object in the cluster has none, so that the cluster's garbage collector does not
 * delete it.
 */
async function replicaOf(name: string, owner?: Omit<OwnerReference, 'name'>): Promise<PolicyServerReplica> {
  const object = await embedded.admin.create<PolicyServerReplica>(POLICY_SERVER_REPLICAS, {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyServerReplica',
    metadata: { name, namespace: NAMESPACE },
    spec: { policyServer: 'default' },
  });
  const ownerReferences = owner === undefined ? [] : [{ ...owner, name }];
  return { ...object, metadata: { ...object.metadata, ownerReferences } };
}

async function podOf(name: string): Promise<Omit<OwnerReference, 'name'>> {
  const pod = await embedded.admin.create<KubernetesObject>(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  return { apiVersion: 'v1', kind: 'Pod', uid: pod.metadata.uid ?? '' };
}

async function leaseOf(name: string, spec: Lease['spec']): Promise<Omit<OwnerReference, 'name'>> {
  const lease = await embedded.admin.create<Lease>(LEASES, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: NAMESPACE },
    spec,
  });
  return { apiVersion: lease.apiVersion, kind: 'Lease', uid: lease.metadata.uid ?? '' };
}

async function isThere(type: typeof LEASES | typeof POLICY_SERVER_REPLICAS, name: string): Promise<boolean> {
  try {
    await embedded.admin.get<KubernetesObject>(type, { namespace: NAMESPACE, name });
    return true;
  } catch (error) {
    assert.ok(isNotFound(error), String(error));
    return false;
  }
}

/** The shortest duration of a Lease, a second. */
const TEN_TIMES_AS_FAST: Clock = {
  now: () => SYSTEM_CLOCK.now() * 10,
  date: () => SYSTEM_CLOCK.date(),
  after: (ms, callback) => SYSTEM_CLOCK.after(ms / 10, callback),
};

/** Runs until it is stopped or has removed the replica. */
function look(
  replica: PolicyServerReplica | (() => PolicyServerReplica),
  cluster: Cluster = embedded.admin,
  clock = SYSTEM_CLOCK,
  unready: (isUnready: boolean) => void = () => undefined,
): Disposable & { done: Promise<void> } {
  const stop = new AbortController();
  const done = removeDeparted(
    typeof replica === 'function' ? replica : () => replica,
    { cluster, timing: TEST_TIMING, clock, random: Math.random, log: pino({ level: 'silent' }), unready },
    stop.signal,
  );
  return { done, [Symbol.dispose]: () => stop.abort() };
}

describe('removeDeparted', { concurrency: true }, () => {
  it('removes a replica whose Pod was deleted', async () => {
    const looking = look(await replicaOf('no-pod', { apiVersion: 'v1', kind: 'Pod', uid: 'u' }));
    await looking.done;
    assert.ok(!(await isThere(POLICY_SERVER_REPLICAS, 'no-pod')));
  });

  it('ends no Lease but that of the replica, whatever its object says', async () => {
    const lease = await leaseOf('controller', { holderIdentity: '', leaseDurationSeconds: 1 });
    const replica = await replicaOf('forged', lease);
    const ownerReferences = [{ ...lease, name: 'controller' }];
    await look({ ...replica, metadata: { ...replica.metadata, ownerReferences } }).done;
    assert.ok(await isThere(LEASES, 'controller'));
    assert.ok(await isThere(POLICY_SERVER_REPLICAS, 'forged'));
  });

  it('removes a replica whose Pod was replaced', async () => {
    const owner = await podOf('other-pod');
    await look(await replicaOf('other-pod', { ...owner, uid: 'before' })).done;
    assert.ok(!(await isThere(POLICY_SERVER_REPLICAS, 'other-pod')));
  });

  it('keeps a replica whose Pod exists, until the Pod has ended', async () => {
    using looking = look(await replicaOf('pod', await podOf('pod')));
    await sleep(3 * TEST_TIMING.ownerCapMs);
    assert.ok(await isThere(POLICY_SERVER_REPLICAS, 'pod'));
    const body = { status: { phase: 'Failed' } };
    const key = { namespace: NAMESPACE, name: 'pod' };
    await embedded.admin.patch(PODS, key, { type: 'merge', body }, { subresource: 'status' });
    await looking.done;
    assert.ok(!(await isThere(POLICY_SERVER_REPLICAS, 'pod')));
  });

  it('says whether the Pod of a replica is ready', async () => {
    const key = { namespace: NAMESPACE, name: 'unready-pod' };
    const setReady = async (status: string): Promise<void> => {
      const body = { status: { conditions: [{ type: 'Ready', status }] } };
      await embedded.admin.patch(PODS, key, { type: 'merge', body }, { subresource: 'status' });
    };
    const owner = await podOf('unready-pod');
    await setReady('True');
    const said: boolean[] = [];
    using _ = look(await replicaOf('unready-pod', owner), embedded.admin, SYSTEM_CLOCK, (one) => said.push(one));
    await until(() => said.at(-1) === false);
    await setReady('False');
    await until(() => said.at(-1) === true);
    await setReady('True');
    await until(() => said.at(-1) === false);
  });

  it('keeps a replica whose Lease is renewed, and removes both when renewals end', async () => {
    const spec = { holderIdentity: 'me', leaseDurationSeconds: 5 };
    const replica = await replicaOf('lease', await leaseOf('lease', spec));
    using looking = look(replica, embedded.admin, TEN_TIMES_AS_FAST);
    const key = { namespace: NAMESPACE, name: 'lease' };
    for (let renewal = 1; renewal <= 4; renewal += 1) {
      const body = { spec: { renewTime: `2030-01-01T00:00:0${renewal}.000000Z` } };
      await sleep(200);
      await embedded.admin.patch(LEASES, key, { type: 'merge', body });
    }
    assert.ok(await isThere(POLICY_SERVER_REPLICAS, 'lease'));
    await looking.done;
    assert.ok(!(await isThere(POLICY_SERVER_REPLICAS, 'lease')));
    assert.ok(!(await isThere(LEASES, 'lease')));
  });

  it('removes a replica whose Lease was deleted', async () => {
    await look(await replicaOf('no-lease', { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', uid: 'u' })).done;
    assert.ok(!(await isThere(POLICY_SERVER_REPLICAS, 'no-lease')));
  });

  it('retries while the API server is unavailable', async () => {
    const calls: Record<string, number> = {};
    const cluster = new Proxy(embedded.admin, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target);
        return async (...args: unknown[]) => {
          const verb = String(property);
          calls[verb] = (calls[verb] ?? 0) + 1;
          if (calls[verb] <= 2) {
            throw new ApiError(503, 'ServiceUnavailable', 'not now');
          }
          return (value as (...all: unknown[]) => Promise<unknown>).apply(target, args);
        };
      },
    });
    await look(await replicaOf('outage', { apiVersion: 'v1', kind: 'Pod', uid: 'u' }), cluster).done;
    assert.ok(!(await isThere(POLICY_SERVER_REPLICAS, 'outage')));
    assert.deepEqual(calls, { get: 5, delete: 3 });
  });

  it('does not remove another object of the same name', async () => {
    const replica = await replicaOf('again', { apiVersion: 'v1', kind: 'Pod', uid: 'u' });
    using looking = look({ ...replica, metadata: { ...replica.metadata, uid: 'before' } });
    await Promise.race([looking.done, sleep(3 * TEST_TIMING.ownerCapMs)]);
    assert.ok(await isThere(POLICY_SERVER_REPLICAS, 'again'));
  });

  it('does not remove an object that another process took over meanwhile', async () => {
    const replica = await replicaOf('taken', { apiVersion: 'v1', kind: 'Pod', uid: 'u' });
    const body = { metadata: { labels: { a: 'b' } } };
    const key = { namespace: NAMESPACE, name: 'taken' };
    const taken = await embedded.admin.patch<PolicyServerReplica>(POLICY_SERVER_REPLICAS, key, { type: 'merge', body });
    const owner = { ...(await podOf('taken')), name: 'taken' };
    const now = { ...taken, metadata: { ...taken.metadata, ownerReferences: [owner] } };
    let looks = 0;
    // The watch lags.
    using looking = look(() => ((looks += 1) === 1 ? replica : now));
    await Promise.race([looking.done, sleep(5 * TEST_TIMING.ownerCapMs)]);
    assert.ok(looks > 1);
    assert.ok(await isThere(POLICY_SERVER_REPLICAS, 'taken'));
  });

  it('keeps a replica without an owner', async () => {
    await look(await replicaOf('unowned')).done;
    assert.ok(await isThere(POLICY_SERVER_REPLICAS, 'unowned'));
  });
});
