// The time that a webhook shared by policies adds to a request, compared with a bare webhook, through a real API server: dry-run
// creates of config maps, alternating, one at a time. Also the number of webhook configurations and of writes to them.
// Usage: npm run bench -- webhooks [REQUESTS] [TENANTS]; needs the programs of the test cluster (npm run cluster:build).
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ANNOTATIONS, customResourceDefinition, type KubernetesObject, OWN_KINDS } from '../src/resources/index.ts';
import { ensureLocalCertificates, type LocalCertificates } from '../src/control/index.ts';
import { clusterAvailable } from '../test/cluster/binaries.ts';
import { type Cluster, startCluster } from '../test/cluster/cluster.ts';
import { freePorts } from '../test/cluster/free-ports.ts';
import { webhookConfiguration, webhookConfigurationPath } from '../test/cluster/webhook-configuration.ts';
import { LabProcess } from '../test/lifecycle/rollout-lab-process.ts';
import { LineProcess, machine, printTable } from './processes.ts';

const [, , requestsText = '1000', tenantsText = '3500'] = process.argv;
const requests = Number(requestsText);
const tenants = Number(tenantsText);
/** Printed quantiles. On a busy machine, the first tenth is closest to the undisturbed time. */
const SHARES = [0.1, 0.5, 0.99];
/** Cluster-wide policies that share a webhook; one of them matches. */
const SHARED = 100;
/** Requests before the measurement, for connections and compiled code. */
const WARM_UP = 1_000;
/** Objects that are created concurrently during the setup. */
const AT_ONCE = 16;
const NAMESPACE = 'portcullis';
const POLICIES_API = 'policies.kubewarden.io/v1';
/** Time until all policies are Active: 3,500 took two minutes. Milliseconds. */
const ACTIVE_MS = 900_000;

const CONFIG_MAPS = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }];
/** An expression that reads the object and allows it. */
const ADMITTING = {
  module: 'builtin:cel',
  settings: { validations: [{ expression: "object.metadata.name != 'forbidden'" }] },
};
/** A module that reads the object and allows it. */
const ADMITTING_MODULE = {
  module: new URL('../examples/required-labels/policy.wasm', import.meta.url).href,
  settings: { labels: ['team'] },
};
/** An expression that changes the object. */
const LABELLING = {
  module: 'builtin:cel',
  mutating: true,
  settings: {
    mutations: [
      {
        patchType: 'ApplyConfiguration',
        applyConfiguration: {
          expression: 'Object{metadata: Object.metadata{labels: {"bench": "labelled"}}}',
        },
      },
    ],
  },
};

type Times = Map<string, number[]>;

class Scene {
  readonly cluster: Cluster;
  readonly #folder: string;

  constructor(cluster: Cluster, folder: string) {
    this.cluster = cluster;
    this.#folder = folder;
  }

  /** Starts a process of Portcullis with its own user, whose requests are exempt from policies. */
  start(command: 'controller' | 'serve', flags: Readonly<Record<string, string>>): LabProcess {
    const args = Object.entries({ ...flags, kubeconfig: this.#kubeconfig(command), namespace: NAMESPACE });
    return new LabProcess(
      command,
      [
        command,
        ...(command === 'controller' ? ['--no-leader-elect'] : []),
        ...args.flatMap(([name, value]) => [`--${name}`, value]),
      ],
      this.#folder,
    );
  }

  /** Creates objects, several concurrently. */
  async create(objects: readonly { readonly path: string; readonly object: object }[]): Promise<void> {
    const waiting = [...objects];
    const creator = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await this.cluster.expect('POST', next.path, next.object);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, creator));
  }

  /** The milliseconds of one dry-run create. */
  async ask(namespace: string): Promise<number> {
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'asked', labels: { team: 'bench' } },
      data: { key: 'value' },
    };
    const began = performance.now();
    await this.cluster.expect('POST', `/api/v1/namespaces/${namespace}/configmaps?dryRun=All`, object);
    return performance.now() - began;
  }

  /** Waits until all policies are Active. */
  async active(path: string, count: number): Promise<void> {
    const deadline = performance.now() + ACTIVE_MS;
    for (;;) {
      const { items } = await this.cluster.expect<{ items: { status?: { phase?: string } }[] }>('GET', path);
      const ready = items.filter(({ status }) => status?.phase === 'Active').length;
      if (ready >= count) {
        return;
      }
      if (performance.now() > deadline) {
        throw new Error(`${ready} of ${count} policies are Active`);
      }
      await sleep(250);
    }
  }

  /** The configurations, their webhooks, and the writes to them: the sum of their generations. */
  async configurations(): Promise<{ readonly objects: number; readonly webhooks: number; readonly writes: number }> {
    const all = await Promise.all(
      (['validating', 'mutating'] as const).map((kind) =>
        this.cluster.expect<{ items: (KubernetesObject & { webhooks?: unknown[] })[] }>(
          'GET',
          `${webhookConfigurationPath(kind)}?labelSelector=portcullis.dev%2Fpolicy-server`,
        ),
      ),
    );
    const items = all.flatMap((list) => list.items);
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    return {
      objects: items.length,
      webhooks: sum(items.map(({ webhooks }) => webhooks?.length ?? 0)),
      writes: sum(items.map(({ metadata }) => metadata.generation ?? 1)),
    };
  }

  #kubeconfig(user: string): string {
    const file = join(this.#folder, `${user}.kubeconfig`);
    const config = JSON.parse(readFileSync(this.cluster.kubeconfig, 'utf8')) as object;
    writeFileSync(file, JSON.stringify({ ...config, 'current-context': user }), { mode: 0o600 });
    return file;
  }
}

/** Sends requests to the namespaces in turn, so that other load affects all of them alike. */
async function rounds(scene: Scene, namespaces: readonly string[]): Promise<Times> {
  const times: Times = new Map(namespaces.map((namespace) => [namespace, []]));
  for (let round = -WARM_UP; round < requests; round += 1) {
    for (const namespace of namespaces) {
      const ms = await scene.ask(namespace);
      if (round >= 0) {
        times.get(namespace)?.push(ms);
      }
    }
  }
  return times;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Namespaces with bare webhooks, by the names in the table. */
const BARE = { 'bare node:https webhook': 'bare' };
/** Changes the object as {@link LABELLING} does, because API servers need time for a patch. */
const BARE_PATCH = { 'bare webhook with a patch': 'bare-patch' };

/**
 * Measures namespaces and prints their times, and the difference from the bare webhook: for those of `changing`, from the bare
 * webhook with a patch.
 */
async function report(
  scene: Scene,
  title: string,
  asked: Readonly<Record<string, string>>,
  changing: Readonly<Record<string, string>> = {},
): Promise<void> {
  const isChanging = Object.keys(changing).length > 0;
  const others: Readonly<Record<string, string>> = isChanging ? { ...BARE_PATCH, ...changing } : {};
  const times = await rounds(scene, ['none', ...Object.values({ ...BARE, ...asked, ...others })]);
  const rowsAgainst =
    (bare: string) =>
    ([what, namespace]: readonly [string, string]): string[] => {
      const values = times.get(namespace) ?? [];
      const least = times.get(bare) ?? [];
      return [
        what,
        ...SHARES.map((share) => `${quantile(values, share).toFixed(2)} ms`),
        ...SHARES.map((share) => `${(quantile(values, share) - quantile(least, share)).toFixed(2)} ms`),
      ];
    };
  const { objects, webhooks, writes } = await scene.configurations();
  console.log(`\n${title}: ${objects} configurations with ${webhooks} webhooks, written ${writes} times in all`);
  printTable(
    ['create', 'p10', 'p50', 'p99', 'p10 − bare', 'p50 − bare', 'p99 − bare'],
    [
      ...Object.entries({ 'no webhook': 'none', ...BARE, ...asked }).map(rowsAgainst(BARE['bare node:https webhook'])),
      ...Object.entries(others).map(rowsAgainst(BARE_PATCH['bare webhook with a patch'])),
    ],
  );
}

/** The only namespaces of the shared webhook, whose selector is the one that all of its policies have. */
const SHARING = ['shared', 'unmatched', 'module'];
const sharing = (bench: string): object => ({ matchLabels: { bench, sharing: 'yes' } });

const clusterPolicy = (
  name: string,
  spec: object,
  annotations: Readonly<Record<string, string>> = {},
): { path: string; object: object } => ({
  path: `/apis/${POLICIES_API}/clusteradmissionpolicies`,
  object: {
    apiVersion: POLICIES_API,
    kind: 'ClusterAdmissionPolicy',
    metadata: { name, annotations },
    spec: {
      ...ADMITTING,
      mutating: false,
      rules: CONFIG_MAPS,
      namespaceSelector: sharing('shared'),
      ...spec,
    },
  },
});

const tenantPolicy = (namespace: string, spec: object): { path: string; object: object } => ({
  path: `/apis/${POLICIES_API}/namespaces/${namespace}/admissionpolicies`,
  object: {
    apiVersion: POLICIES_API,
    kind: 'AdmissionPolicy',
    metadata: { name: 'own', namespace },
    spec: { ...ADMITTING, mutating: false, rules: CONFIG_MAPS, ...spec },
  },
});

/** Different kinds of settings. */
const mixed = (index: number): object => ({
  failurePolicy: index % 2 === 0 ? 'Fail' : 'Ignore',
  matchPolicy: index % 5 === 0 ? 'Exact' : 'Equivalent',
  timeoutSeconds: 2 + (index % 9),
});

/** Measures other kinds of policies: modules, mutating policies, and those of tenants. */
async function measureSorts(scene: Scene): Promise<void> {
  await scene.create([
    clusterPolicy('module', { namespaceSelector: sharing('module'), ...ADMITTING_MODULE }),
    clusterPolicy('mutating', { namespaceSelector: { matchLabels: { bench: 'mutating' } }, ...LABELLING }),
    tenantPolicy('tenant', {}),
  ]);
  await scene.active(`/apis/${POLICIES_API}/clusteradmissionpolicies`, 4);
  await scene.active(`/apis/${POLICIES_API}/admissionpolicies`, 1);
  await report(
    scene,
    'one policy of each sort',
    { 'a module': 'module', 'a policy of a tenant': 'tenant' },
    { 'expressions that change objects': 'mutating' },
  );
}

async function measure(scene: Scene): Promise<void> {
  const alone = { namespaceSelector: { matchLabels: { bench: 'own' } } };
  await scene.create([clusterPolicy('matches', {}), clusterPolicy('alone', alone, { [ANNOTATIONS.webhook]: 'Own' })]);
  await scene.active(`/apis/${POLICIES_API}/clusteradmissionpolicies`, 2);
  await report(scene, 'one policy', { 'with a webhook of its own': 'own', 'in a shared webhook': 'shared' });
  await measureSorts(scene);
  await scene.create(
    Array.from({ length: SHARED - 1 }, (_, index) =>
      clusterPolicy(`other-${index}`, { objectSelector: { matchLabels: { other: String(index) } } }),
    ),
  );
  await scene.active(`/apis/${POLICIES_API}/clusteradmissionpolicies`, SHARED + 3);
  await report(scene, `${SHARED} policies`, {
    'with a webhook of its own': 'own',
    'in a shared webhook, one matches': 'shared',
    'in a shared webhook, none matches': 'unmatched',
  });
  if (tenants === 0) {
    return;
  }
  const names = Array.from({ length: tenants }, (_, index) => `tenant-${index}`);
  await scene.create(
    names.map((name) => ({
      path: '/api/v1/namespaces',
      object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    })),
  );
  const began = performance.now();
  await scene.create(names.map((namespace, index) => tenantPolicy(namespace, mixed(index))));
  await scene.active(`/apis/${POLICIES_API}/admissionpolicies`, tenants + 1);
  console.log(
    `\n${tenants} policies of tenants: all Active after ${((performance.now() - began) / 1000).toFixed(0)} s`,
  );
  await report(scene, `${tenants} tenants, a policy each`, {
    'with a webhook of its own': 'own',
    'a tenant': 'tenant-10',
  });
}

async function setScene(cluster: Cluster, certificates: LocalCertificates, bare: LineProcess): Promise<void> {
  const ca = readFileSync(certificates.caFile, 'utf8');
  for (const own of OWN_KINDS) {
    const definition = customResourceDefinition(own);
    await cluster.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
  }
  await cluster.createNamespace(NAMESPACE);
  await cluster.createNamespace('none');
  for (const namespace of ['own', 'mutating', 'tenant', ...SHARING]) {
    const isSharing = SHARING.includes(namespace);
    await cluster.createNamespace(namespace, { bench: namespace, ...(isSharing ? { sharing: 'yes' } : {}) });
  }
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
  await cluster.expect('POST', `/apis/${POLICIES_API}/policyservers`, {
    apiVersion: POLICIES_API,
    kind: 'PolicyServer',
    metadata: { name: 'default' },
    spec: { image: 'portcullis', replicas: 1 },
  });
  const port = await bare.line();
  for (const [name, kind, path] of [
    ['bare', 'validating', '/'],
    ['bare-patch', 'mutating', '/patch'],
  ] as const) {
    await cluster.createNamespace(name, { bench: name });
    const configuration = webhookConfiguration({
      name,
      kind,
      url: `https://localhost:${port}${path}`,
      caBundle: ca,
      rules: [{ operations: ['CREATE'], apiVersions: ['v1'], resources: ['configmaps'] }],
      namespaceSelector: { matchLabels: { bench: name } },
    });
    await cluster.expect('POST', webhookConfigurationPath(kind), configuration);
  }
}

async function main(): Promise<void> {
  const available = clusterAvailable();
  if (!available.available) {
    console.log(`webhooks: ${available.reason}`);
    return;
  }
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const certificates = await ensureLocalCertificates(join(folder, 'pki'));
  const users = { controller: { groups: ['system:masters'] }, serve: { groups: ['system:masters'] } };
  const cluster = stack.use(await startCluster({ users }));
  const bare = new LineProcess('./bare-webhook.ts', [certificates.certFile, certificates.keyFile]);
  stack.defer(() => bare.end());
  await setScene(cluster, certificates, bare);
  const scene = new Scene(cluster, folder);
  const control = {
    'control-cert-file': certificates.controlCertFile,
    'control-key-file': certificates.controlKeyFile,
    'control-ca-file': certificates.caFile,
  };
  const [free] = await freePorts(1);
  const port = String(free);
  const server = scene.start('serve', {
    ...control,
    port,
    'policy-server': 'default',
    'replica-name': 'bench',
    addr: '127.0.0.1',
    'readiness-probe-port': '0',
    'cert-file': certificates.certFile,
    'key-file': certificates.keyFile,
    'control-addr': '127.0.0.1',
    'control-port': '0',
    'policies-download-dir': join(folder, 'data'),
  });
  stack.defer(() => server.end('SIGKILL'));
  await server.logs('policy server ready');
  const controller = scene.start('controller', {
    ...control,
    'policy-server-url': `https://localhost:${port}`,
    'policy-server-ca-file': certificates.caFile,
    'operations-port': '0',
  });
  stack.defer(() => controller.end('SIGKILL'));
  await controller.logs('controller ready');
  console.log(`\nwebhooks: ${requests} requests of each sort in turn, a real kube-apiserver; ${machine()}`);
  await measure(scene);
}

await main();
