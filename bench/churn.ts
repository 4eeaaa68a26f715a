// What `portcullis start` keeps of namespaces that are gone: tenants come, write policies, change them twice, are denied, and go.
// Ends with 1 when something names them that is not known to forget them.
// Usage: npm run bench -- churn [ROUNDS] [NAMESPACES]
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesCluster } from '../src/cluster/index.ts';
import { valueAt } from '../src/values/index.ts';
import { heapCensus } from './heap-census.ts';
import { Product } from './hostile-product.ts';
import { machine, printTable } from './processes.ts';
import { inTurns } from './scene.ts';

const rounds = Number(process.argv[2] ?? 3);
const perRound = Number(process.argv[3] ?? 40);
const AT_ONCE = 8;
const CHANGES = 2;
/** Until policies are Active, or namespaces gone. Milliseconds. */
const PATIENCE_MS = 60_000;
const POLL_MS = 250;
/** Pause before the snapshot, for what is forgotten within seconds. Milliseconds. */
const REST_MS = 20_000;
const LIMITS = new Map([
  ['serve', 4096],
  ['controller', 4096],
]);
const NAME = /churn-\d+-\d+/;
const POLICIES = '/apis/policies.kubewarden.io/v1';
const GOVERNANCE = '/apis/policy.open-cluster-management.io/v1';
const NETWORK_POLICIES = '/apis/networking.k8s.io/v1';

/** What names objects that are gone, and until when; all but the history forget when the next entry comes. */
const FORGETFUL: ReadonlyMap<string, string> = new Map([
  ['ChangeLog.#changes', 'history of the embedded cluster: 5 to 10 minutes'],
  ['NamedObjects.#names', 'events, which are objects: an hour'],
  ['EventCorrelator.#records', 'an hour, 4,096 at most'],
  ['EventCorrelator.#similar', '10 minutes, 4,096 at most'],
  ['EventCorrelator.#buckets', '5 minutes for each event, 4,096 at most'],
  ['EvaluationCounts.#namespaces', 'labels of metrics: 200 at most'],
  ['WriteBackoff.#writes', '2 minutes'],
  ['ContestedObjects.#writes', 'a minute, 50,000 at most'],
  ['EvaluationSchedule.#deleted', '5 seconds for each evaluation, 10,000 at most'],
]);

const settings = (name: string, version: number): object => ({
  validations: [{ expression: `object.metadata.name != 'forbidden-${name}-${version}'`, message: `not in ${name}` }],
});

const guard = (name: string, version: number): object => ({
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'AdmissionPolicy',
  metadata: { name: `guard-${name}`, namespace: name },
  spec: {
    module: 'builtin:cel',
    mutating: false,
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    settings: settings(name, version),
  },
});

/** A Policy that is Compliant nowhere. */
const wish = (name: string): object => ({
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'Policy',
  metadata: { name: 'wish', namespace: name },
  spec: {
    disabled: false,
    'policy-templates': [
      {
        objectDefinition: {
          apiVersion: 'policy.open-cluster-management.io/v1',
          kind: 'ConfigurationPolicy',
          metadata: { name: `wish-${name}` },
          spec: {
            remediationAction: 'inform',
            severity: 'low',
            'object-templates': [
              {
                complianceType: 'musthave',
                objectDefinition: {
                  apiVersion: 'v1',
                  kind: 'ConfigMap',
                  metadata: { name: 'wished', namespace: name },
                },
              },
            ],
          },
        },
      },
    ],
  },
});

class Tenants {
  readonly #cluster: KubernetesCluster;
  readonly #names: readonly string[];

  constructor(cluster: KubernetesCluster, round: number) {
    this.#cluster = cluster;
    this.#names = Array.from({ length: perRound }, (_, index) => `churn-${round}-${index}`);
  }

  async comeAndGo(): Promise<void> {
    await this.#each((name) => this.#come(name));
    for (let version = 1; version <= CHANGES; version += 1) {
      await this.#allActive();
      await this.#each(async (name) => {
        await this.#ask(name, version - 1);
        await this.#cluster.request('PATCH', `${this.#policies(name)}/guard-${name}`, {
          body: { spec: { settings: settings(name, version) } },
          contentType: 'application/merge-patch+json',
        });
      });
    }
    await this.#allActive();
    await this.#each((name) => this.#ask(name, CHANGES));
    await this.#each((name) => this.#cluster.request('DELETE', `/api/v1/namespaces/${name}`));
    await this.#until(async () => (await this.#items('/api/v1/namespaces', ['metadata', 'name'])).length === 0);
  }

  async #come(name: string): Promise<void> {
    const create = (path: string, body: object): Promise<unknown> => this.#cluster.request('POST', path, { body });
    await create('/api/v1/namespaces', { metadata: { name, labels: { tenant: name } } });
    await create(this.#policies(name), guard(name, 0));
    await create(`${GOVERNANCE}/namespaces/${name}/policies`, wish(name));
    await create(`${NETWORK_POLICIES}/namespaces/${name}/networkpolicies`, {
      metadata: { name: `net-${name}`, namespace: name },
      spec: { podSelector: {} },
    });
  }

  /** One request that is denied, and one that is not. */
  async #ask(name: string, version: number): Promise<void> {
    for (const object of [`forbidden-${name}-${version}`, `allowed-${name}-${version}`]) {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: object } };
      await this.#cluster.request('POST', `/api/v1/namespaces/${name}/configmaps`, { body }).catch(() => undefined);
    }
  }

  #policies(name: string): string {
    return `${POLICIES}/namespaces/${name}/admissionpolicies`;
  }

  async #allActive(): Promise<void> {
    await this.#until(async () =>
      (await this.#items(`${POLICIES}/admissionpolicies`, ['metadata', 'namespace'])).every(
        (policy) =>
          valueAt(policy, 'status', 'phase') === 'Active' &&
          valueAt(policy, 'status', 'observedGeneration') === valueAt(policy, 'metadata', 'generation'),
      ),
    );
  }

  /** The objects of these tenants. */
  async #items(path: string, field: readonly string[]): Promise<readonly unknown[]> {
    const list: unknown = (await this.#cluster.request('GET', path)).json();
    const items = valueAt(list, 'items');
    return Array.isArray(items)
      ? items.filter((item) => this.#names.some((name) => name === valueAt(item, ...field)))
      : [];
  }

  #each(act: (name: string) => Promise<unknown>): Promise<void> {
    return inTurns(this.#names, AT_ONCE, act);
  }

  async #until(isDone: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!(await isDone())) {
      if (performance.now() > deadline) {
        throw new Error(`the tenants are not done after ${PATIENCE_MS / 1000} s`);
      }
      await sleep(POLL_MS);
    }
  }
}

process.env['NODE_OPTIONS'] = `--import=${new URL('./heap-snapshots.mjs', import.meta.url).href}`;
const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
try {
  await using product = await Product.start(folder, LIMITS);
  using admin = product.client();
  for (let round = 0; round < rounds; round += 1) {
    await new Tenants(admin, round).comeAndGo();
  }
  await sleep(REST_MS);
  const commands = product.signal('SIGUSR2');
  while (!commands.every((command) => existsSync(join(folder, `snapshots-done-${command}`)))) {
    await sleep(POLL_MS);
  }
  report();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function report(): void {
  const rows = readdirSync(folder)
    .filter((name) => name.endsWith('.heapsnapshot'))
    .flatMap((name) =>
      [...heapCensus(join(folder, name), NAME)].map(([keeper, names]) => ({ name, keeper, count: names.size })),
    )
    .toSorted((one, other) => other.count - one.count);
  console.log(`\nchurn: ${rounds * perRound} namespaces that are gone, named in the heap; ${machine()}`);
  printTable(
    ['thread', 'kept by', 'namespaces', 'until'],
    rows.map(({ name, keeper, count }) => [
      name.replace('.heapsnapshot', ''),
      keeper,
      String(count),
      FORGETFUL.get(keeper) ?? '',
    ]),
  );
  // A queue may have the last object in a variable.
  const unknown = rows.filter(({ keeper, count }) => !FORGETFUL.has(keeper) && count > perRound / 2);
  process.exitCode = unknown.length > 0 ? 1 : 0;
}
