// The statuses of many NetworkPolicies of mixed shape: their creation, a change of the provider's version, and a time without
// changes; beside each, how long a client takes that only writes the same. On kube-apiserver where its programs are built
// (npm run cluster:build), else on the embedded cluster. Takes minutes.
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
  keyOf,
  keyText,
  knownKind,
  NETWORK_POLICY_KINDS,
  NETWORK_POLICY_STATUSES,
  type NetworkPolicyStatus,
} from '../src/resources/index.ts';
import { type ObjectCache, SharedCaches } from '../src/runtime/index.ts';
import { clusterAvailable } from '../test/cluster/binaries.ts';
import { startCluster } from '../test/cluster/cluster.ts';
import { eventually } from '../test/cluster/eventually.ts';
import { MIXED_NAMESPACES, mixedPolicies } from './mixed-network-policies.ts';
import { RecordedWrites } from './recorded-writes.ts';
import { inTurns } from './scene.ts';

/** Time without changes. Milliseconds. */
const STEADY_MS = 20_000;
/** Objects that are created concurrently during the setup. */
const AT_ONCE = 16;
/** Writes in flight of the client that only writes: as many as of the controller. */
const WRITES_AT_ONCE = 8;
const POLL_MS = 20;
/** Statuses that are written before anything is measured. */
const WARM_WRITES = 1_000;
const TIME = '2026-01-01T00:00:00Z';
const FEATURES = ['Enforcement', 'Ingress', 'NamedPort', 'IPBlock'];

const PODS = knownKind('v1', 'Pod');
const NAMESPACES = knownKind('v1', 'Namespace');
const POLICIES = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');

/** What the controllers request meanwhile. */
interface Requests {
  lists: number;
  /** Where their writes of statuses are recorded. */
  writes: RecordedWrites | undefined;
}

/** @param isReal whether the cluster is a kube-apiserver */
async function benchStatuses(policies: number, isReal: boolean): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const cluster = isReal ? await realCluster(stack) : await embeddedCluster(stack);
  await prepare(cluster, policies);
  await warmUp(cluster);
  const name = isReal ? 'kube-apiserver' : 'the embedded cluster, in the same process';
  console.log(`netpol statuses: ${policies} policies on ${name}, load average ${loadavg()[0]?.toFixed(1)}`);
  const before = mebibytes(process.memoryUsage().rss);
  const [creation, upgrade, none] = [1, 2, 3].map(() => stack.use(new RecordedWrites(NETWORK_POLICY_STATUSES)));
  if (creation === undefined || upgrade === undefined || none === undefined) {
    throw new Error('three phases are recorded');
  }
  const controller = await runControllers(cluster, policies, { creation, upgrade, none });
  const most = Math.round(process.resourceUsage().maxRSS / 1024);
  console.log(`  memory: ${before} MiB before, at most ${most} MiB, now ${mebibytes(process.memoryUsage().rss)} MiB`);
  await deleteStatuses(cluster);
  const bareCreation = await spent(() => creation.repeat(cluster, WRITES_AT_ONCE));
  const bareUpgrade = await spent(() => upgrade.repeat(cluster, WRITES_AT_ONCE));
  table([
    [
      '',
      'only the writes',
      'the controller',
      'ratio',
      'writes for each policy',
      'processor time of both',
      'load average of both',
    ],
    tableRow('creation', bareCreation, controller.creation, creation.count / policies),
    tableRow("the provider's version changes", bareUpgrade, controller.upgrade, upgrade.count / policies),
  ]);
}

interface Phases<T> {
  readonly creation: T;
  readonly upgrade: T;
}

/** All that the controllers write in a phase is recorded, also what comes after all statuses were right once. */
async function runControllers(
  cluster: Cluster,
  policies: number,
  recorded: Phases<RecordedWrites> & { readonly none: RecordedWrites },
): Promise<Phases<Spent>> {
  const log = pino({ level: 'silent' });
  const requests: Requests = { lists: 0, writes: recorded.creation };
  const counted = countRequests(cluster, requests);
  const caches = new SharedCaches({ cluster: counted, log });
  const right = new RightStatuses(caches.cache(NETWORK_POLICY_STATUSES));
  const controllers = new NetworkPolicyControllers({
    cluster: counted,
    caches,
    events: { event: () => {} },
    registry: new Registry(),
    log,
  });
  const stop = new AbortController();
  const allRight = async (provider: string): Promise<void> => {
    while (right.count(provider) < policies || !controllers.isIdle) {
      await sleep(POLL_MS);
    }
  };
  const running: Promise<void>[] = [];
  const creation = await spent(async () => {
    running.push(caches.start(stop.signal), controllers.start(stop.signal));
    await allRight('cilium 1.15.4');
  });
  await settled(controllers);
  requests.writes = recorded.upgrade;
  const upgrade = await spent(async () => {
    await upgradeProvider(cluster);
    await allRight('cilium 1.16.0');
  });
  await settled(controllers);
  Object.assign(requests, { writes: recorded.none, lists: 0 });
  const steady = await spent(() => sleep(STEADY_MS));
  console.log(
    `  ${STEADY_MS / 1000} s without changes: ${recorded.none.count} writes, ${requests.lists} lists, processor time ${seconds(steady.cpuMs)}`,
  );
  stop.abort();
  await Promise.all(running);
  return { creation, upgrade };
}

/** The policies whose status is about a version of the provider. */
class RightStatuses {
  readonly #policies = new Map<string, Set<string>>();

  constructor(statuses: ObjectCache<NetworkPolicyStatus>) {
    statuses.subscribe(({ after }) => {
      const { summary, conditions } = after?.status ?? {};
      if (after !== undefined && findCondition(conditions, 'Accepted') !== undefined) {
        const provider = summary?.providers ?? '';
        this.#policies.set(provider, (this.#policies.get(provider) ?? new Set()).add(keyText(keyOf(after))));
      }
    });
  }

  count(provider: string): number {
    return this.#policies.get(provider)?.size ?? 0;
  }
}

async function upgradeProvider(cluster: Cluster): Promise<void> {
  const { spec } = agentPod({ image: 'quay.io/cilium/cilium:v1.16.0' });
  const [container] = (spec as { containers: readonly object[] }).containers;
  const body = { spec: { containers: [{ ...container }] } };
  await cluster.patch(PODS, { namespace: 'kube-system', name: 'cilium-a' }, { type: 'strategic', body });
}

/** Comparisons of namespaces and writes of NetworkPolicyProviders come a second later. */
async function settled(controllers: NetworkPolicyControllers): Promise<void> {
  await sleep(3_000);
  while (!controllers.isIdle) {
    await sleep(POLL_MS);
  }
}

/** Time, and processor time of this process. Milliseconds. */
interface Spent {
  readonly ms: number;
  readonly cpuMs: number;
  /** Of the machine at the end: times with different ones cannot be compared. */
  readonly load: string;
}

async function spent(work: () => Promise<unknown>): Promise<Spent> {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  const load = loadavg()[0]?.toFixed(1) ?? '';
  return { ms: performance.now() - start, cpuMs: (user + system) / 1000, load };
}

function tableRow(name: string, bare: Spent, controller: Spent, writes: number): readonly string[] {
  const cpu = `${seconds(bare.cpuMs)}, ${seconds(controller.cpuMs)}`;
  const load = `${bare.load}, ${controller.load}`;
  return [
    name,
    seconds(bare.ms),
    seconds(controller.ms),
    (controller.ms / bare.ms).toFixed(2),
    writes.toFixed(3),
    cpu,
    load,
  ];
}

function table(rows: readonly (readonly string[])[]): void {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows) {
    console.log(`  ${row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  ')}`);
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 ** 2);
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

async function prepare(cluster: Cluster, policies: number): Promise<void> {
  for (const own of NETWORK_POLICY_KINDS) {
    await cluster.create(DEFINITIONS, customResourceDefinition(own));
  }
  await eventually(async () => void (await cluster.list(NETWORK_POLICY_STATUSES)));
  for (const name of ['kube-system', ...MIXED_NAMESPACES]) {
    await cluster.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }).catch(() => {});
  }
  await cluster.create(PODS, agentPod());
  await inTurns([...mixedPolicies(policies)], AT_ONCE, (policy) => cluster.create(POLICIES, policy));
}

/** Writes statuses of no policy, so that whoever writes first does not find a server that has just started. */
async function warmUp(cluster: Cluster): Promise<void> {
  using writes = new RecordedWrites(NETWORK_POLICY_STATUSES);
  const condition = {
    type: 'Accepted',
    status: 'True',
    reason: 'Accepted',
    message: 'a message',
    lastTransitionTime: TIME,
  };
  const features = FEATURES.map((type) => ({ ...condition, type, paths: ['spec'] }));
  const provider = { controllerName: 'cilium.io/agent', name: 'cilium', reporter: 'warm-up', conditions: [condition] };
  const status = { observedGeneration: 1, providers: [{ ...provider, features }], conditions: [condition] };
  for (let index = 0; index < WARM_WRITES; index += 1) {
    const key = { namespace: MIXED_NAMESPACES[0] ?? '', name: `warm-up-${index}` };
    const object = { apiVersion: 'portcullis.dev/v1', kind: NETWORK_POLICY_STATUSES.kind, metadata: key };
    const options = { fieldManager: 'warm-up' };
    writes.record(NETWORK_POLICY_STATUSES, key, { type: 'apply', body: { ...object, spec: {} } }, options);
    const patch = { type: 'apply', body: { ...object, status } } as const;
    writes.record(NETWORK_POLICY_STATUSES, key, patch, { ...options, subresource: 'status' });
  }
  await writes.repeat(cluster, WRITES_AT_ONCE);
  await deleteStatuses(cluster);
}

async function deleteStatuses(cluster: Cluster): Promise<void> {
  for (const namespace of MIXED_NAMESPACES) {
    await cluster.deleteCollection(NETWORK_POLICY_STATUSES, { namespace });
  }
}

/** The cluster, whose lists are counted and whose patches are recorded. */
function countRequests(cluster: Cluster, requests: Requests): Cluster {
  return new Proxy(cluster, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') {
        return value;
      }
      return (...args: readonly unknown[]): unknown => {
        requests.lists += name === 'list' ? 1 : 0;
        if (name === 'patch') {
          requests.writes?.record(...(args as Parameters<RecordedWrites['record']>));
        }
        return Reflect.apply(value, target, args);
      };
    },
  });
}

const args = process.argv.slice(2);
const [count = 10_000] = args.filter((one) => !one.startsWith('--')).map(Number);
await benchStatuses(count, !args.includes('--embedded') && clusterAvailable().available);
