// The statuses of many NetworkPolicies: their creation, a change of the provider's version, and a time without changes. On
// kube-apiserver where its programs are built (npm run cluster:build), else on the embedded cluster. Takes minutes.
//   node bench/netpol-status.ts [policies] [--embedded]
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../src/apiserver/index.ts';
import { type Cluster, KubernetesCluster, tokenCredentials } from '../src/cluster/index.ts';
import { NetworkPolicyControllers } from '../src/network-policy/index.ts';
import { agentPod } from '../src/network-policy/testing/sample-cluster.ts';
import {
  customResourceDefinition,
  findCondition,
  knownKind,
  type KubernetesObject,
  NETWORK_POLICY_KINDS,
  NETWORK_POLICY_STATUSES,
} from '../src/resources/index.ts';
import { SharedCaches } from '../src/runtime/index.ts';
import { clusterAvailable } from '../test/cluster/binaries.ts';
import { startCluster } from '../test/cluster/cluster.ts';
import { eventually } from '../test/cluster/eventually.ts';
import { samplePolicy } from './sample-network-policy.ts';
import { inTurns } from './scene.ts';

/** Time without changes. Milliseconds. */
const STEADY_MS = 20_000;
/** Objects that are created concurrently during the setup. */
const AT_ONCE = 16;
const POLL_MS = 50;

const PODS = knownKind('v1', 'Pod');
const NAMESPACES = knownKind('v1', 'Namespace');
const POLICIES = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');

/** Requests of the controllers. */
interface Requests {
  writes: number;
  lists: number;
}

/**
 * @param policies objects, whose namespaces are created
 * @param isReal whether the cluster is a kube-apiserver
 */
async function benchStatuses(policies: readonly KubernetesObject[], isReal: boolean): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const cluster = isReal ? await realCluster(stack) : await embeddedCluster(stack);
  await prepare(cluster, policies);
  console.log(
    `netpol statuses: ${policies.length} policies on ${isReal ? 'kube-apiserver' : 'the embedded cluster'}, load average ${loadavg()[0]?.toFixed(1)}`,
  );
  const log = pino({ level: 'silent' });
  const requests: Requests = { writes: 0, lists: 0 };
  const counted = countRequests(cluster, requests);
  const caches = new SharedCaches({ cluster: counted, log });
  const statuses = caches.cache(NETWORK_POLICY_STATUSES);
  const controllers = new NetworkPolicyControllers({
    cluster: counted,
    caches,
    events: { event: () => {} },
    registry: new Registry(),
    log,
  });
  const stop = new AbortController();
  let start = new Moment();
  const running = [caches.start(stop.signal), controllers.start(stop.signal)];
  const allRight = async (provider: string): Promise<void> => {
    for (;;) {
      const right = statuses
        .list()
        .filter(
          ({ status }) =>
            status?.summary?.providers === provider && findCondition(status.conditions, 'Accepted') !== undefined,
        );
      if (right.length >= policies.length && controllers.isIdle) {
        return;
      }
      await sleep(POLL_MS);
    }
  };
  await allRight('cilium 1.15.4');
  row(`all statuses created (${requests.writes} writes)`, start);
  await controllersSettled(controllers);
  requests.writes = 0;
  start = new Moment();
  const { spec } = agentPod({ image: 'quay.io/cilium/cilium:v1.16.0' });
  const [container] = (spec as { containers: readonly object[] }).containers;
  const body = { spec: { containers: [{ ...container }] } };
  await cluster.patch(PODS, { namespace: 'kube-system', name: 'cilium-a' }, { type: 'strategic', body });
  await allRight('cilium 1.16.0');
  row(`all statuses right after a change of the version (${requests.writes} writes)`, start);
  await controllersSettled(controllers);
  Object.assign(requests, { writes: 0, lists: 0 });
  await sleep(STEADY_MS);
  console.log(`  ${STEADY_MS / 1000} s without changes: ${requests.writes} writes, ${requests.lists} lists`);
  const memory = Math.round(process.memoryUsage().rss / 1024 ** 2);
  console.log(`  memory of ${isReal ? 'the controller' : 'controller and cluster'}: ${memory} MiB`);
  stop.abort();
  await Promise.all(running);
}

/** Writes of what was redundant only after the comparison of namespaces, and of NetworkPolicyProviders. */
async function controllersSettled(controllers: NetworkPolicyControllers): Promise<void> {
  await sleep(3_000);
  while (!controllers.isIdle) {
    await sleep(POLL_MS);
  }
}

/** A beginning, for the time and the processor time of this process since. */
class Moment {
  readonly #start = performance.now();
  readonly #cpu = process.cpuUsage();

  toString(): string {
    const { user, system } = process.cpuUsage(this.#cpu);
    const seconds = ((performance.now() - this.#start) / 1000).toFixed(1);
    return `${seconds.padStart(6)} s, processor time ${((user + system) / 1e6).toFixed(1)} s`;
  }
}

function row(name: string, start: Moment): void {
  console.log(`  ${name.padEnd(66)} ${String(start)}`);
}

async function realCluster(stack: AsyncDisposableStack): Promise<Cluster> {
  const server = stack.adopt(await startCluster(), (one) => one.stop());
  const cluster = new KubernetesCluster({
    server: server.url,
    ca: readFileSync(server.caFile, 'utf8'),
    credentials: tokenCredentials(server.adminToken),
  });
  stack.defer(() => cluster.close());
  return cluster;
}

async function embeddedCluster(stack: AsyncDisposableStack): Promise<Cluster> {
  return stack.use(await EmbeddedCluster.open()).admin;
}

async function prepare(cluster: Cluster, policies: readonly KubernetesObject[]): Promise<void> {
  for (const own of NETWORK_POLICY_KINDS) {
    await cluster.create(DEFINITIONS, customResourceDefinition(own));
  }
  await eventually(async () => void (await cluster.list(NETWORK_POLICY_STATUSES)));
  const names = new Set(['kube-system', ...policies.map(({ metadata }) => metadata.namespace ?? '')]);
  for (const name of names) {
    await cluster.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }).catch(() => {});
  }
  await cluster.create(PODS, agentPod());
  await inTurns(policies, AT_ONCE, (policy) => cluster.create(POLICIES, policy));
}

/** The cluster, whose writes and lists are counted. */
function countRequests(cluster: Cluster, requests: Requests): Cluster {
  return new Proxy(cluster, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') {
        return value;
      }
      return (...args: readonly unknown[]): unknown => {
        requests.writes += ['create', 'update', 'patch', 'delete', 'deleteCollection'].includes(String(name)) ? 1 : 0;
        requests.lists += name === 'list' ? 1 : 0;
        return Reflect.apply(value, target, args);
      };
    },
  });
}

const args = process.argv.slice(2);
const [count = 10_000] = args.filter((one) => !one.startsWith('--')).map(Number);
await benchStatuses(
  Array.from({ length: count }, (_, index) => samplePolicy(index)),
  !args.includes('--embedded') && clusterAvailable() !== undefined,
);
