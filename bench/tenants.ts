// What the same pod configuration costs in the namespaces of N tenants, by how it is enforced, through a real API server: each
// request creates a pod, as the service account of a tenant. Usage: npm run bench -- tenants [N...] [--idle SECONDS]
// [--pods N] [--most-policies N] [--svg FILE]; needs the programs of the test cluster (npm run cluster:build). Default: 1 500 3500
// 10000; the last only with parameters.
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { ApiResponse } from '../test/cluster/api-request.ts';
import { clusterAvailable } from '../test/cluster/binaries.ts';
import { linePlot } from './line-plot.ts';
import { machine, median, printTable, residentMiB, threadsCpuMs } from './processes.ts';
import { inTurns, quantile, Scene } from './scene.ts';
import {
  addTenants,
  BARE,
  NATIVE,
  NO_POLICY,
  PARAMETERS,
  POLICIES,
  prepareBaselines,
  type Setup,
  tenantNamespace,
  UID_ANNOTATION,
  uidOf,
} from './tenant-setups.ts';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    idle: { type: 'string', default: '60' },
    pods: { type: 'string', default: '1000' },
    'most-policies': { type: 'string', default: '3500' },
    svg: { type: 'string' },
  },
});
const sizes = (positionals.length === 0 ? ['1', '500', '3500', '10000'] : positionals).map(Number);
const idleSeconds = Number(flags.idle);
/** Pods of each setup and size, in blocks that alternate, so that other load affects all setups alike. */
const pods = Number(flags.pods);
const BLOCKS = 5;
/** Pods before the measurement, for connections, caches and compiled code. */
const WARM_UP = 200;
/** More tenants than this have no AdmissionPolicy each: 10,000 take six minutes to become Active, much longer beside other load. */
const mostPolicies = Number(flags['most-policies']);
/** More tenants than this have no binding each: each is asked about for each pod. */
const MOST_BINDINGS = 3_500;
/** Changes of one tenant's parameters. */
const CHANGES = 20;
/** Requests at once, and changes at once, while the parameters of all tenants change. */
const CREATORS = 4;
const CHANGERS = 16;

/** Figures of one setup at one size. Milliseconds and MiB. */
interface Figures {
  readonly tenants: number;
  readonly setup: Setup;
  readonly times: number[];
  readonly apiServerCpu: number[];
  readonly ownCpu: number[];
  apiServerMemory: number;
  serverMemory: number;
  controllerMemory: number;
}

const pod = (name: string, { labels }: Setup): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: 'bench', ...labels } },
  spec: {
    containers: [{ name: 'main', image: 'registry.example/tool:1', resources: { limits: { memory: '64Mi' } } }],
    volumes: [{ name: 'scratch', emptyDir: {} }],
  },
});

/** Creates a pod as the service account of a tenant. */
function createPod(scene: Scene, tenant: number, object: object, query = ''): Promise<ApiResponse<Pod>> {
  const namespace = tenantNamespace(tenant);
  return scene.cluster.request<Pod>('POST', `/api/v1/namespaces/${namespace}/pods${query}`, object, {
    impersonate: `system:serviceaccount:${namespace}:default`,
  });
}

/** A pod that the policy with parameters sees, without storing it. */
const tryPod = (scene: Scene, tenant: number): Promise<ApiResponse<Pod>> =>
  createPod(scene, tenant, pod('asked', PARAMETERS), '?dryRun=All');

interface Pod {
  readonly message?: string;
  readonly spec?: { readonly securityContext?: { readonly runAsUser?: number } };
}

let created = 0;

/** Creates pods of tenants all over the cluster, one at a time, and deletes them outside of the measurement. */
async function block(scene: Scene, { setup, ...figures }: Figures, count: number): Promise<void> {
  const own = (): number => threadsCpuMs(scene.server.pid) + threadsCpuMs(scene.controller.pid);
  const paths: string[] = [];
  const [apiServer, ours] = [threadsCpuMs(scene.apiServerPid), own()];
  for (let index = 0; index < count; index += 1) {
    created += 1;
    // A prime step visits all tenants before it comes back to one.
    const tenant = (created * 7919) % figures.tenants;
    const name = `pod-${created}`;
    const began = performance.now();
    const { status, body } = await createPod(scene, tenant, pod(name, setup));
    figures.times.push(performance.now() - began);
    if (status !== 201) {
      throw new Error(`${setup.title}: a pod of tenant ${tenant} was answered with ${status}: ${body.message}`);
    }
    paths.push(`/api/v1/namespaces/${tenantNamespace(tenant)}/pods/${name}`);
  }
  figures.apiServerCpu.push((threadsCpuMs(scene.apiServerPid) - apiServer) / count);
  figures.ownCpu.push((own() - ours) / count);
  await scene.remove(paths);
}

/** Figures of a setup, and of the bare webhooks in the same minutes: other load of the machine affects both alike. */
interface Row {
  readonly figures: Figures;
  readonly bare: Figures;
}

/** Measures setups that are installed, among them the bare webhooks, block by block in turn. */
async function measure(scene: Scene, tenants: number, setups: readonly Setup[]): Promise<readonly Row[]> {
  const empty = (setup: Setup): Figures => ({
    tenants,
    setup,
    times: [],
    apiServerCpu: [],
    ownCpu: [],
    apiServerMemory: 0,
    serverMemory: 0,
    controllerMemory: 0,
  });
  for (const setup of setups) {
    await block(scene, empty(setup), WARM_UP);
  }
  const all = setups.map(empty);
  for (let index = 0; index < BLOCKS; index += 1) {
    // Another one first each time: what a block leaves behind, such as deleted pods, affects the next.
    for (const figures of [...all.slice(index % all.length), ...all.slice(0, index % all.length)]) {
      await block(scene, figures, Math.ceil(pods / BLOCKS));
    }
  }
  for (const figures of all) {
    figures.apiServerMemory = residentMiB(scene.apiServerPid);
    figures.serverMemory = residentMiB(scene.server.pid);
    figures.controllerMemory = residentMiB(scene.controller.pid);
  }
  return all.map((figures) => ({ figures, bare: all.find(({ setup }) => setup === BARE) ?? figures }));
}

/** Requests that the API server has answered, by verb and resource, from its own metrics. */
async function requestCounts({ cluster }: Scene): Promise<ReadonlyMap<string, number>> {
  const { body } = await cluster.request<string>('GET', '/metrics');
  const counts = new Map<string, number>();
  for (const [, labels = '', value = ''] of body.matchAll(/^apiserver_request_total\{(.*)\} (\S+)$/gm)) {
    const label = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    if (label('resource') !== '') {
      const key = `${label('verb')} ${label('resource')}`;
      counts.set(key, (counts.get(key) ?? 0) + Number(value));
    }
  }
  return counts;
}

/** The requests of some idle seconds, as text. */
async function idleRequests(scene: Scene): Promise<string> {
  const before = await requestCounts(scene);
  await sleep(idleSeconds * 1000);
  const after = await requestCounts(scene);
  const grown = [...after]
    .map(([key, count]) => [key, count - (before.get(key) ?? 0)] as const)
    .filter(([, count]) => count > 0)
    .toSorted(([a], [b]) => a.localeCompare(b));
  return grown.map(([key, count]) => `${key} ${count}`).join(', ') || 'none';
}

/** Milliseconds from the answer to a change of one tenant's parameters until its next pods have the new default. */
async function changeOfOne(scene: Scene, tenants: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let change = 1; change <= CHANGES; change += 1) {
    const tenant = (change * 7919) % tenants;
    const uid = uidOf(tenant) + 100_000 + change;
    await annotate(scene, tenant, uid);
    const began = performance.now();
    for (;;) {
      const { body } = await tryPod(scene, tenant);
      if (body.spec?.securityContext?.runAsUser === uid) {
        break;
      }
    }
    times.push(performance.now() - began);
  }
  return times;
}

/** Pods that failed while the parameters of all tenants changed at once, of how many. */
async function changeOfAll(scene: Scene, tenants: number): Promise<{ failed: number; asked: number; seconds: number }> {
  let isChanging = true;
  let asked = 0;
  let failed = 0;
  const creator = async (): Promise<void> => {
    while (isChanging) {
      asked += 1;
      const { status } = await tryPod(scene, (asked * 7919) % tenants);
      failed += status === 201 ? 0 : 1;
    }
  };
  const creators = Array.from({ length: CREATORS }, creator);
  const began = performance.now();
  const numbers = Array.from({ length: tenants }, (_, index) => index);
  await inTurns(numbers, CHANGERS, (tenant) => annotate(scene, tenant, uidOf(tenant)));
  const seconds = (performance.now() - began) / 1000;
  isChanging = false;
  await Promise.all(creators);
  return { failed, asked, seconds };
}

async function annotate({ cluster }: Scene, tenant: number, uid: number): Promise<void> {
  const body = { metadata: { annotations: { [UID_ANNOTATION]: String(uid) } } };
  await cluster.expect('PATCH', `/api/v1/namespaces/${tenantNamespace(tenant)}`, body);
}

function printFigures(all: readonly Row[]): void {
  const number = (value: number, digits = 2): string => value.toFixed(digits);
  const rows = all.map(({ figures, bare }) => {
    const [p50, bareP50] = [quantile(figures.times, 0.5), quantile(bare.times, 0.5)];
    const [cpu, bareCpu] = [median(figures.apiServerCpu), median(bare.apiServerCpu)];
    return [
      String(figures.tenants),
      figures.setup.title,
      number(p50),
      number(quantile(figures.times, 0.99)),
      number(p50 - bareP50),
      number(cpu),
      number(cpu / bareCpu),
      number(median(figures.ownCpu)),
      number(figures.apiServerMemory, 0),
      number(figures.serverMemory, 0),
      number(figures.controllerMemory, 0),
    ];
  });
  console.log('\nmilliseconds for a pod, and MiB resident');
  printTable(
    [
      'tenants',
      'enforced by',
      'p50',
      'p99',
      'p50 − bare',
      'API server CPU',
      '× bare',
      'our CPU',
      'API server',
      'policy server',
      'controller',
    ],
    rows,
  );
}

/** What parameters cost apart from requests. */
async function parameterRows(scene: Scene, tenants: number): Promise<readonly (readonly string[])[]> {
  const one = await changeOfOne(scene, tenants);
  const all = await changeOfAll(scene, tenants);
  const idle = await idleRequests(scene);
  return [
    [`requests in ${idleSeconds} s without changes`, idle],
    // The thread that loaded the policy, and tried it with all parameters, has ended.
    ['policy server after these', `${residentMiB(scene.server.pid).toFixed(0)} MiB resident`],
    [
      'one tenant changes → its next pod',
      `${quantile(one, 0.5).toFixed(0)} ms at the median, ${Math.max(...one).toFixed(0)} ms the slowest of ${CHANGES}`,
    ],
    [`all change, in ${all.seconds.toFixed(1)} s`, `${all.failed} of ${all.asked} requests failed meanwhile`],
  ];
}

/** Installs a setup, and prints the time until it is in effect. */
async function install(scene: Scene, setup: Setup, tenants: number): Promise<void> {
  const began = performance.now();
  await setup.install?.(scene, tenants);
  console.log(`${setup.title}: in effect after ${((performance.now() - began) / 1000).toFixed(0)} s`);
}

/** Measures the setups at one size, one after the other. */
async function* measureSize(scene: Scene, tenants: number): AsyncGenerator<readonly Row[]> {
  console.log(`\n${tenants} tenants`);
  await install(scene, PARAMETERS, tenants);
  yield await measure(scene, tenants, [NO_POLICY, BARE, PARAMETERS]);
  printTable([], await parameterRows(scene, tenants));
  await PARAMETERS.uninstall?.(scene, tenants);
  for (const [setup, most] of [
    [NATIVE, MOST_BINDINGS],
    [POLICIES, mostPolicies],
  ] as const) {
    if (tenants <= most) {
      await install(scene, setup, tenants);
      const rows = await measure(scene, tenants, [BARE, setup]);
      yield rows.filter(({ figures }) => figures.setup === setup);
      await setup.uninstall?.(scene, tenants);
    }
  }
}

/** Adds what is measured at each size. */
async function measureSizes(scene: Scene, rows: Row[]): Promise<void> {
  let tenants = 0;
  for (const size of sizes) {
    await addTenants(scene, tenants, size);
    tenants = size;
    for await (const more of measureSize(scene, size)) {
      rows.push(...more);
    }
  }
}

/** The cost of a pod against the number of tenants. */
function plot(rows: readonly Row[]): string {
  const all = rows.map(({ figures }) => figures);
  const titles = [...new Set(all.map(({ setup }) => setup.title))];
  return linePlot({
    title: 'API server CPU for one pod, by tenants',
    x: 'tenants',
    y: 'ms',
    lines: titles.map((title) => ({
      title,
      points: all
        .filter(({ setup }) => setup.title === title)
        .map(({ tenants, apiServerCpu }) => [tenants, median(apiServerCpu)] as const),
    })),
  });
}

async function allowPods({ cluster }: Scene): Promise<void> {
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const group = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:serviceaccounts' };
  await cluster.expect('POST', `${rbac}/clusterroles`, {
    metadata: { name: 'bench-pods' },
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['create'] }],
  });
  await cluster.expect('POST', `${rbac}/clusterrolebindings`, {
    metadata: { name: 'bench-pods' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bench-pods' },
    subjects: [group],
  });
}

async function main(): Promise<void> {
  const available = clusterAvailable();
  if (!available.available) {
    console.log(`tenants: ${available.reason}`);
    return;
  }
  await using scene = await Scene.open();
  console.log(`tenants: ${pods} pods for each row, one at a time, a real kube-apiserver; ${machine()}`);
  await allowPods(scene);
  await prepareBaselines(scene);
  console.log(`requests in ${idleSeconds} s without Portcullis: ${await idleRequests(scene)}`);
  await scene.startProcesses();
  const rows: Row[] = [];
  try {
    await measureSizes(scene, rows);
  } finally {
    // Also what was measured before a failure: all of it takes long.
    printFigures(rows);
    if (flags.svg !== undefined) {
      writeFileSync(flags.svg, plot(rows));
    }
  }
}

await main();
