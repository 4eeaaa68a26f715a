// Governance policies on an embedded cluster: a cold start, the requests of an idle cluster, and the time from a dependency that
// is met to the template that waited for it.
//   node bench/governance.ts [policies] [idle seconds]
import { enableCompileCache } from 'node:module';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { EmbeddedCluster } from '../src/apiserver/index.ts';
import type { Cluster } from '../src/cluster/index.ts';
import { GovernanceControllers } from '../src/governance/index.ts';
import { DEFAULT_GOVERNANCE_SETTINGS } from '../src/governance/settings/index.ts';
import {
  ALL_KINDS,
  CONFIGURATION_POLICIES,
  type ConfigurationPolicy,
  customResourceDefinition,
  kubernetesKind,
  type KubernetesObject,
  POLICIES,
  type ResourceType,
} from '../src/resources/index.ts';
import { EventRecorder, Runtime, SharedCaches } from '../src/runtime/index.ts';

const CLUSTER = 'local-cluster';
const API_VERSION = 'policy.open-cluster-management.io/v1';
/** Object templates of one policy. */
const TEMPLATES = 5;
/** Dependencies that are met, one after the other. */
const CHAINS = 50;
const CONFIG_MAPS = kind('v1', 'ConfigMap');
/** The methods of a cluster that send a request. */
const REQUESTS: ReadonlySet<string | symbol> = new Set(['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']);

/** Controllers on a cluster of their own, whose requests are counted. */
class Scene implements AsyncDisposable {
  readonly admin: Cluster;
  requests = 0;
  readonly #cluster: EmbeddedCluster;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(cluster: EmbeddedCluster) {
    this.#cluster = cluster;
    this.admin = cluster.admin;
  }

  static async open(): Promise<Scene> {
    const scene = new Scene(await EmbeddedCluster.open());
    for (const own of ALL_KINDS) {
      await scene.admin.create(
        kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
        customResourceDefinition(own),
      );
    }
    const labels = { 'app.kubernetes.io/managed-by': 'portcullis' };
    for (const name of [CLUSTER, 'objects', 'policies']) {
      const metadata = { name, labels };
      await scene.admin.create(kind('v1', 'Namespace'), { apiVersion: 'v1', kind: 'Namespace', metadata });
    }
    return scene;
  }

  async start(): Promise<void> {
    const log = pino({ level: 'silent' });
    const cluster = this.#counted(this.admin);
    const caches = new SharedCaches({ cluster, log });
    const events = new EventRecorder({ cluster, component: 'bench', log });
    const settings = DEFAULT_GOVERNANCE_SETTINGS;
    const controllers = new GovernanceControllers({ cluster, governed: cluster, caches, settings, events, log });
    this.#running = new Runtime({ log }).add('cache', caches).add('leader', events, controllers).run(this.#stop.signal);
    await Promise.race([controllers.ready, this.#running]);
  }

  async evaluated(count: number): Promise<void> {
    for (;;) {
      const { items } = await this.admin.list<ConfigurationPolicy>(CONFIGURATION_POLICIES);
      if (items.filter(({ status }) => status?.compliant === 'Compliant').length === count) {
        return;
      }
      await sleep(5);
    }
  }

  #counted(cluster: Cluster): Cluster {
    return new Proxy(cluster, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') {
          return value;
        }
        if (REQUESTS.has(name)) {
          return (...args: readonly unknown[]): unknown => {
            this.requests += 1;
            return Reflect.apply(value, target, args);
          };
        }
        return value.bind(target);
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#cluster.close();
  }
}

async function cold(remediation: 'inform' | 'enforce', count: number): Promise<void> {
  await using scene = await Scene.open();
  for (let index = 0; index < count; index += 1) {
    await scene.admin.create(CONFIGURATION_POLICIES, configurationPolicy(index, remediation));
    for (let template = 0; remediation === 'inform' && template < TEMPLATES; template += 1) {
      await scene.admin.create(CONFIG_MAPS, configMap(index, template));
    }
  }
  const began = performance.now();
  await scene.start();
  await scene.evaluated(count);
  const seconds = (performance.now() - began) / 1000;
  const memory = process.memoryUsage().rss / 2 ** 20;
  console.log(
    `  cold start, ${remediation.padEnd(9)}        ${count} policies in ${seconds.toFixed(2)} s, ${scene.requests} requests, ${memory.toFixed(0)} MiB with the cluster`,
  );
}

async function idle(count: number): Promise<number> {
  await using scene = await Scene.open();
  for (let index = 0; index < count; index += 1) {
    await scene.admin.create(CONFIGURATION_POLICIES, configurationPolicy(index, 'enforce'));
  }
  await scene.start();
  await scene.evaluated(count);
  await sleep(2_000);
  scene.requests = 0;
  await sleep(idleSeconds * 1000);
  return scene.requests;
}

/** A Policy waits for a ConfigMap that another one requires; the ConfigMap appears. */
async function dependencies(): Promise<void> {
  await using scene = await Scene.open();
  await scene.start();
  const times: number[] = [];
  for (let index = 0; index < CHAINS; index += 1) {
    await scene.admin.create(POLICIES, policy(`first-${index}`, configMap(2 * index, 0), undefined));
    await scene.admin.create(POLICIES, policy(`second-${index}`, configMap(2 * index + 1, 0), `first-${index}`));
    await exists(scene.admin, POLICIES, { namespace: CLUSTER, name: `policies.second-${index}` });
    await sleep(50);
    const began = performance.now();
    await scene.admin.create(CONFIG_MAPS, configMap(2 * index, 0));
    await exists(scene.admin, CONFIG_MAPS, { namespace: 'objects', name: `object-${2 * index + 1}-0` });
    times.push(performance.now() - began);
  }
  times.sort((left, right) => left - right);
  const at = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(0);
  console.log(`  dependency met → applied       p50 ${at(0.5)} ms, slowest of ${CHAINS} ${at(0.999)} ms`);
}

async function exists(cluster: Cluster, type: ResourceType, key: { namespace: string; name: string }): Promise<void> {
  const { items } = await cluster.list(type, { namespace: key.namespace });
  if (!items.some(({ metadata }) => metadata.name === key.name)) {
    await sleep(1);
    await exists(cluster, type, key);
  }
}

/** A Policy with one template that requires an object; the second of two enforces it. */
function policy(name: string, object: KubernetesObject, dependency: string | undefined): KubernetesObject {
  const dependencies =
    dependency === undefined
      ? []
      : [{ apiVersion: API_VERSION, kind: 'Policy', name: dependency, compliance: 'Compliant' }];
  const spec = {
    remediationAction: dependency === undefined ? 'inform' : 'enforce',
    'object-templates': [{ complianceType: 'musthave', objectDefinition: object }],
  };
  const objectDefinition = { apiVersion: API_VERSION, kind: 'ConfigurationPolicy', metadata: { name }, spec };
  return {
    apiVersion: API_VERSION,
    kind: 'Policy',
    metadata: { name, namespace: 'policies' },
    spec: { disabled: false, dependencies, 'policy-templates': [{ objectDefinition }] },
  };
}

function configurationPolicy(index: number, remediationAction: string): KubernetesObject {
  const templates = Array.from({ length: TEMPLATES }, (_, template) => ({
    complianceType: 'musthave',
    objectDefinition: configMap(index, template),
  }));
  return {
    apiVersion: API_VERSION,
    kind: 'ConfigurationPolicy',
    metadata: { namespace: CLUSTER, name: `policy-${index}` },
    spec: { remediationAction, 'object-templates': templates },
  };
}

function configMap(index: number, template: number): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'objects', name: `object-${index}-${template}` },
    data: { key: 'value', index: String(index) },
  };
}

function kind(apiVersion: string, name: string): ResourceType {
  const type = kubernetesKind(apiVersion, name);
  if (type === undefined) {
    throw new Error(`no kind ${name} in ${apiVersion}`);
  }
  return type;
}

// As the program does: threads load compiled code.
enableCompileCache();
const [policies = 500, idleSeconds = 20] = process.argv.slice(2).map(Number);
await main();

async function main(): Promise<void> {
  console.log(`governance: ${TEMPLATES} object templates in each policy, load average ${loadavg()[0]?.toFixed(1)}`);
  await cold('inform', policies);
  await cold('enforce', policies);
  const [few, many] = [await idle(1), await idle(policies)];
  console.log(`  idle for ${idleSeconds} s, requests     1 policy ${few}, ${policies} policies ${many}`);
  await dependencies();
}
