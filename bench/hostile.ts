// What a hostile tenant costs another namespace: each class of attack is applied by a user with rights in one namespace only, to
// `portcullis start`, while another namespace sends 200 requests a second. Ends with 1 when a class exceeds a bound.
// Usage: npm run bench -- hostile [CLASS...] [--seconds N] [--limit MIB] [--rate N]
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { KubernetesCluster } from '../src/cluster/index.ts';
import { ATTACKS, type Attack } from './hostile-attacks.ts';
import { Product, type ProductFigures } from './hostile-product.ts';
import { Tenant } from './hostile-tenant.ts';
import { LineProcess, machine, printTable } from './processes.ts';
import { EXAMPLES } from './setting.ts';
import type { SteadyLoadFigures, SteadyLoadOptions } from './steady-load.ts';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '20' },
    limit: { type: 'string', default: '1024' },
    rate: { type: 'string', default: '200' },
  },
});
const seconds = Number(flags.seconds);
/** Memory of the processes: what the chart grants a policy server, and half of what it grants a controller. MiB. */
const LIMITS = new Map([
  ['serve', Number(flags.limit)],
  ['controller', 512],
]);
/** Requests a second of the other namespace: fewer on a machine that cannot serve as many without an attack. */
const rate = Number(flags.rate);
const PROCESSES = ['serve', 'controller', 'apiserver'] as const;
const MAX_P99_MS = 500;
/** Before each class, the victim has so many seconds within the bound: for compiled code, and for what the class before left. */
const GOOD_SECONDS = 3;
/** Wait for them on a busy machine at most so long. Milliseconds. */
const MAX_REST_MS = 8_000;

const POLICIES = '/apis/policies.kubewarden.io/v1';
const ATTACKER = 'mallory';
const VICTIM = 'alice';

const CONFIG_MAPS = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }];

/** A namespace, and the right of the user of its name to write policies, config maps and pods in it. */
async function addNamespace(admin: KubernetesCluster, name: string): Promise<void> {
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const metadata = { name, namespace: name };
  const rights = [
    { apiGroups: ['policies.kubewarden.io'], resources: ['admissionpolicies', 'admissionpolicygroups'], verbs: ['*'] },
    { apiGroups: [''], resources: ['configmaps', 'pods'], verbs: ['*'] },
  ];
  const create = (path: string, body: object): Promise<unknown> => admin.request('POST', path, { body });
  await create('/api/v1/namespaces', { metadata: { name, labels: { bench: name } } });
  await create(`${rbac}/namespaces/${name}/roles`, { metadata, rules: rights });
  await create(`${rbac}/namespaces/${name}/rolebindings`, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
  });
}

/** A module of the victim's own, and expressions of the administrator for its namespace. */
async function addVictimPolicies(admin: KubernetesCluster, folder: string): Promise<void> {
  copyFileSync(`${EXAMPLES}/required-labels/policy.wasm`, join(folder, 'labels.wasm'));
  const policy = (kind: string, path: string, spec: object): Promise<unknown> =>
    admin.request('POST', `${POLICIES}/${path}`, {
      body: {
        apiVersion: 'policies.kubewarden.io/v1',
        kind,
        metadata: { name: 'labels' },
        spec: { mutating: false, rules: CONFIG_MAPS, ...spec },
      },
    });
  await policy('AdmissionPolicy', `namespaces/${VICTIM}/admissionpolicies`, {
    module: 'file://./labels.wasm',
    settings: { labels: ['team'] },
  });
  await policy('ClusterAdmissionPolicy', 'clusteradmissionpolicies', {
    module: 'builtin:cel',
    namespaceSelector: { matchLabels: { bench: VICTIM } },
    settings: { validations: [{ expression: "object.metadata.name != 'forbidden'" }] },
  });
}

async function startVictim(product: Product): Promise<LineProcess> {
  const { server, ca = '', credentials } = product.connection;
  const { authorization = '' } = (await credentials?.current()) ?? {};
  const options: SteadyLoadOptions = { server, ca, authorization, user: VICTIM, namespace: VICTIM, rate };
  return new LineProcess('./steady-load.ts', [JSON.stringify(options)]);
}

interface Measured {
  readonly attack: Attack;
  readonly victim: SteadyLoadFigures;
  readonly product: ProductFigures;
  readonly outcome: string;
}

/** Figures of the victim since the last call. */
async function victimFigures(victim: LineProcess): Promise<SteadyLoadFigures> {
  victim.send('figures');
  return JSON.parse(await victim.line()) as SteadyLoadFigures;
}

/** Waits until the victim is well. */
async function settle(victim: LineProcess): Promise<void> {
  await victimFigures(victim);
  const deadline = performance.now() + MAX_REST_MS;
  for (let good = 0; performance.now() < deadline && good < GOOD_SECONDS;) {
    await sleep(1000);
    const { failed, p99 } = await victimFigures(victim);
    good = failed === 0 && p99 <= MAX_P99_MS ? good + 1 : 0;
  }
}

/** Applies a class, removes it, and measures until it is gone. */
async function measure(attack: Attack, product: Product, victim: LineProcess, folder: string): Promise<Measured> {
  const client = product.client(ATTACKER);
  const tenant = new Tenant(ATTACKER, client, folder);
  const { connection, admissionPort } = product;
  await settle(victim);
  await product.takeFigures();
  const cpu = product.cpuMs;
  const signal = AbortSignal.timeout(seconds * 1000);
  await attack.run({ tenant, user: ATTACKER, connection, admissionPort, signal });
  const { answers } = tenant;
  const outcome = await tenant.outcome().catch(messageOf);
  const problem = await tenant.clear().then(() => undefined, messageOf);
  const figures = { victim: await victimFigures(victim), product: await product.takeFigures() };
  client[Symbol.dispose]();
  console.log(`  ${((product.cpuMs - cpu) / 1000).toFixed(1)} s of processor time`);
  return {
    attack,
    ...figures,
    outcome: [outcome, answers && `answers: ${answers}`, problem].filter(Boolean).join('; '),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What exceeds a bound. */
function problemsOf({ victim, product }: Measured): readonly string[] {
  return [
    victim.failed > 0 ? `${victim.failed} failed, the first with: ${victim.firstFailure}` : '',
    victim.p99 > MAX_P99_MS ? `p99 ${victim.p99.toFixed(0)} ms, expected at most ${MAX_P99_MS}` : '',
    ...Array.from(LIMITS, ([command, mib]) => {
      const peak = product.peaks.get(command) ?? 0;
      return peak > mib ? `peak of ${command} ${peak.toFixed(0)} MiB, expected at most ${mib}` : '';
    }),
    product.processRestarts > 0 ? `${product.processRestarts} restarts of a process` : '',
  ].filter(Boolean);
}

function printFigures(all: readonly Measured[]): void {
  console.log();
  printTable(
    [
      'class',
      'what the tenant does',
      'requests',
      'failed',
      '429',
      'p50 ms',
      'p99 ms',
      'longest',
      ...PROCESSES.map((command) => `${command} MiB`),
      'workers',
      'processes',
    ],
    all.map(({ attack, victim, product }) => [
      attack.name,
      attack.what,
      String(victim.asked),
      String(victim.failed),
      String(victim.retried),
      victim.p50.toFixed(1),
      victim.p99.toFixed(0),
      victim.longest.toFixed(0),
      ...PROCESSES.map((command) => (product.peaks.get(command) ?? 0).toFixed(0)),
      String(product.workerRestarts),
      String(product.processRestarts),
    ]),
  );
  console.log('429: requests that were sent again; MiB: the peak of a process; workers, processes: restarts\n');
  const baseline = all.find(({ attack }) => attack.name === 'nothing');
  if (baseline !== undefined && baseline.victim.p99 > MAX_P99_MS) {
    console.log('The machine is too busy: without an attack, too, p99 exceeds its bound. Times say nothing.\n');
  }
  for (const measured of all) {
    const problems = problemsOf(measured);
    console.log(`${problems.length === 0 ? 'within bounds' : 'EXCEEDED     '}  ${measured.attack.name}`);
    for (const line of [...problems, measured.outcome].filter(Boolean)) {
      console.log(`               ${line}`);
    }
  }
}

async function main(folder: string): Promise<void> {
  await using product = await Product.start(folder, LIMITS);
  const admin = product.client();
  await addNamespace(admin, VICTIM);
  await addNamespace(admin, ATTACKER);
  await addVictimPolicies(admin, folder);
  const victim = await startVictim(product);
  await using _victim = { [Symbol.asyncDispose]: () => victim.end() };
  const all: Measured[] = [];
  for (const attack of ATTACKS) {
    if (positionals.length === 0 || positionals.includes(attack.name)) {
      console.log(`${attack.name}: ${attack.what}`);
      all.push(await measure(attack, product, victim, folder));
    }
  }
  admin[Symbol.dispose]();
  printFigures(all);
  console.log(`\nafter it: ${machine()}`);
  process.exitCode = all.some((measured) => problemsOf(measured).length > 0) ? 1 : 0;
}

console.log(
  `\nhostile: ${rate} requests/s of another namespace, ${seconds} s for each class, limits in MiB: ${Array.from(LIMITS, (one) => one.join(' ')).join(', ')}; ${machine()}`,
);
const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
try {
  await main(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
