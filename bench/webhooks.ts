// The time that a webhook shared by policies adds to a request, compared with a bare webhook, through a real API server: dry-run
// creates of config maps, alternating, one at a time. Also the number of webhook configurations and of writes to them.
// Usage: npm run bench -- webhooks [REQUESTS] [TENANTS]; needs the programs of the test cluster (npm run cluster:build).
import { ANNOTATIONS, type KubernetesObject } from '../src/resources/index.ts';
import { clusterAvailable } from '../test/cluster/binaries.ts';
import { webhookConfigurationPath } from '../test/cluster/webhook-configuration.ts';
import { machine, printTable } from './processes.ts';
import { type NewObject, POLICIES_API, quantile, Scene } from './scene.ts';

const [, , requestsText = '1000', tenantsText = '3500'] = process.argv;
const requests = Number(requestsText);
const tenants = Number(tenantsText);
/** Printed quantiles. On a busy machine, the first tenth is closest to the undisturbed time. */
const SHARES = [0.1, 0.5, 0.99];
/** Cluster-wide policies that share a webhook; one of them matches. */
const SHARED = 100;
/** Requests before the measurement, for connections and compiled code. */
const WARM_UP = 1_000;

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

/** The milliseconds of one dry-run create. */
async function ask({ cluster }: Scene, namespace: string): Promise<number> {
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'asked', labels: { team: 'bench' } },
    data: { key: 'value' },
  };
  const began = performance.now();
  await cluster.expect('POST', `/api/v1/namespaces/${namespace}/configmaps?dryRun=All`, object);
  return performance.now() - began;
}

interface Configurations {
  readonly objects: number;
  readonly webhooks: number;
  readonly writes: number;
}

/** The configurations, their webhooks, and the writes to them: the sum of their generations. */
async function configurationsOf({ cluster }: Scene): Promise<Configurations> {
  const all = await Promise.all(
    (['validating', 'mutating'] as const).map((kind) =>
      cluster.expect<{ items: (KubernetesObject & { webhooks?: unknown[] })[] }>(
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

/** Sends requests to the namespaces in turn, so that other load affects all of them alike. */
async function rounds(scene: Scene, namespaces: readonly string[]): Promise<Times> {
  const times: Times = new Map(namespaces.map((namespace) => [namespace, []]));
  for (let round = -WARM_UP; round < requests; round += 1) {
    for (const namespace of namespaces) {
      const ms = await ask(scene, namespace);
      if (round >= 0) {
        times.get(namespace)?.push(ms);
      }
    }
  }
  return times;
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
  const { objects, webhooks, writes } = await configurationsOf(scene);
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

const clusterPolicy = (name: string, spec: object, annotations: Readonly<Record<string, string>> = {}): NewObject => ({
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

const tenantPolicy = (namespace: string, spec: object): NewObject => ({
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

async function setScene(scene: Scene): Promise<void> {
  const { cluster } = scene;
  await cluster.createNamespace('none');
  for (const namespace of ['own', 'mutating', 'tenant', ...SHARING]) {
    const isSharing = SHARING.includes(namespace);
    await cluster.createNamespace(namespace, { bench: namespace, ...(isSharing ? { sharing: 'yes' } : {}) });
  }
  const bare = await scene.startBareWebhook();
  for (const [name, kind, path] of [
    ['bare', 'validating', '/'],
    ['bare-patch', 'mutating', '/patch'],
  ] as const) {
    await cluster.createNamespace(name, { bench: name });
    await scene.registerWebhook(name, {
      kind,
      url: `${bare}${path}`,
      rules: [{ operations: ['CREATE'], apiVersions: ['v1'], resources: ['configmaps'] }],
      namespaceSelector: { matchLabels: { bench: name } },
    });
  }
}

async function main(): Promise<void> {
  const available = clusterAvailable();
  if (!available.available) {
    console.log(`webhooks: ${available.reason}`);
    return;
  }
  await using scene = await Scene.open();
  await setScene(scene);
  await scene.startProcesses();
  console.log(`\nwebhooks: ${requests} requests of each sort in turn, a real kube-apiserver; ${machine()}`);
  await measure(scene);
}

await main();
