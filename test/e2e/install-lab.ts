// A cluster with Portcullis, installed from its charts. Everything is real except nodes: Pods are processes.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { manifestsOf } from '../../src/cli/policy/manifests.ts';
import {
  type Cluster,
  type ClusterOptions,
  type KubernetesObject,
  type KubectlResult,
  startCluster,
} from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { type NodeOptions, startNode, type TestNode } from '../cluster/node/node.ts';
import { ROOT, type CommandResult, portcullis } from '../cli/command.ts';
import { ModuleWeb } from '../lifecycle/rollout-lab-sources.ts';

/** The namespace of the product. */
export const NAMESPACE = 'portcullis';
export const CONTROLLER = 'portcullis-controller';
export const POLICY_SERVER = 'policy-server-default';
/** The module of an example policy: in a file, or in the registry of the examples. */
const EXAMPLE_MODULE = /file:\/\/\.\/([\w-]+)\/policy\.wasm|registry:\/\/registry\.example\/([\w-]+):[\w.]+/g;
/** Time limit for steps that take seconds, and ten times as long on a machine under load. Milliseconds. */
const TIMEOUT_MS = 90_000;
/** Interval between attempts. Milliseconds. */
const INTERVAL_MS = 100;

/** Values of the chart. */
export type Values = Readonly<Record<string, unknown>>;

/** All objects of a cluster, as `resource/namespace/name`. */
export type Inventory = Set<string>;

/** Resources whose objects Kubernetes creates and deletes at any time. */
const TRANSIENT = ['events', 'events.events.k8s.io', 'endpoints', 'endpointslices.discovery.k8s.io'];

/** Options of {@link InstallLab.start}. */
export interface InstallLabOptions extends NodeOptions {
  /** Users besides the admin, by name. */
  readonly users?: NonNullable<ClusterOptions['users']>;
}

export class InstallLab implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly node: TestNode;
  readonly web: ModuleWeb;
  readonly #stack: AsyncDisposableStack;

  private constructor(parts: { cluster: Cluster; node: TestNode; web: ModuleWeb; stack: AsyncDisposableStack }) {
    this.cluster = parts.cluster;
    this.node = parts.node;
    this.web = parts.web;
    this.#stack = parts.stack;
  }

  /** Starts a cluster with a node, without the product. The users have no rights. */
  static async start({ users = {}, ...options }: InstallLabOptions = {}): Promise<InstallLab> {
    const stack = new AsyncDisposableStack();
    try {
      const web = stack.use(await ModuleWeb.start());
      const cluster = stack.use(await startCluster({ controllers: true, users }));
      const node = stack.use(await startNode(cluster, options));
      return new InstallLab({ cluster, node, web, stack });
    } catch (error) {
      await stack.disposeAsync();
      throw error;
    }
  }

  /** Installs or upgrades the charts. Does not wait until the product runs. */
  async install(values: Values = {}): Promise<void> {
    await this.helm(['upgrade', '--install', 'portcullis-crds', chart('portcullis-crds'), '--create-namespace']);
    // A new CustomResourceDefinition has no conditions yet, and `kubectl wait` fails then.
    await this.eventually('the kinds to be served', () =>
      this.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=10s']),
    );
    await this.helm(
      ['upgrade', '--install', 'portcullis', chart('portcullis'), '--values', '-'],
      JSON.stringify(values),
    );
  }

  /** Runs a helm command in the namespace of the product. It must succeed. Returns its output. */
  async helm(args: readonly string[], stdin = ''): Promise<string> {
    const options = { stdin, timeoutMs: TIMEOUT_MS };
    const result = await this.cluster.helm([...args, '--namespace', NAMESPACE], options);
    return succeeded(result, `helm ${args.join(' ')}\n${this.node.logs()}`);
  }

  /** Runs a kubectl command. It must succeed. Returns its output. */
  async kubectl(args: readonly string[], stdin?: string): Promise<string> {
    return succeeded(
      await this.cluster.kubectl(args, stdin === undefined ? {} : { stdin }),
      `kubectl ${args.join(' ')}`,
    );
  }

  apply(...objects: readonly object[]): Promise<string> {
    return this.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  }

  /** Runs a command of the product against this cluster. */
  command(...args: readonly string[]): Promise<CommandResult> {
    return portcullis(args, { env: { KUBECONFIG: this.cluster.kubeconfig } });
  }

  get<T = KubernetesObject>(path: string): Promise<T> {
    return this.cluster.expect<T>('GET', path);
  }

  /** Waits until a Deployment of the product is rolled out: all Pods are new and available, and no old one is left. */
  async rolledOut(name: string): Promise<void> {
    await this.eventually(`deployment ${name}`, async () => {
      const path = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${name}`;
      const { metadata, spec, status } = await this.get<KubernetesObject & Record<string, Record<string, number>>>(
        path,
      );
      const { replicas } = spec ?? {};
      assert.equal(status?.['observedGeneration'], metadata['generation']);
      assert.deepEqual(
        [status?.['updatedReplicas'] ?? 0, status?.['availableReplicas'] ?? 0, status?.['replicas'] ?? 0],
        [replicas, replicas, replicas],
      );
      const pods = await this.get<{ items: KubernetesObject[] }>(`/api/v1/namespaces/${NAMESPACE}/pods`);
      const ours = pods.items.filter(({ metadata: { name: pod = '' } }) => pod.startsWith(`${name}-`));
      assert.equal(ours.length, replicas);
    });
  }

  /** Waits until the controllers and the policy server `default` are ready. */
  async running(): Promise<void> {
    await this.rolledOut(CONTROLLER);
    await this.eventually('the PolicyServer to be ready', async () => {
      const { status } = await this.get<{ status?: { conditions?: { type: string; status: string }[] } }>(
        '/apis/policies.kubewarden.io/v1/policyservers/default',
      );
      assert.equal(status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'True', JSON.stringify(status));
    });
    await this.rolledOut(POLICY_SERVER);
  }

  /** Waits until the current spec of a policy is Active. `resource` is the plural. */
  async active(resource: string, name: string, namespace?: string): Promise<void> {
    const scope = namespace === undefined ? '' : `namespaces/${namespace}/`;
    await this.eventually(`${resource}/${name} to be Active`, async () => {
      const { metadata, status } = await this.get<KubernetesObject & { status?: Record<string, unknown> }>(
        `/apis/policies.kubewarden.io/v1/${scope}${resource}/${name}`,
      );
      assert.equal(status?.['phase'], 'Active', JSON.stringify(status));
      assert.equal(status['observedGeneration'], metadata['generation']);
    });
  }

  /** Retries until an attempt does not throw. The error after the time limit contains the logs of all processes. */
  async eventually<T>(what: string, attempt: () => Promise<T>): Promise<T> {
    try {
      return await eventually(attempt, { timeoutMs: TIMEOUT_MS, intervalMs: INTERVAL_MS });
    } catch (error) {
      const said = this.node.logs().split('\n').slice(-120).join('\n');
      throw new Error(`waited for ${what}: ${String(error)}\n${said}\n${this.node.problems.join('\n')}`, {
        cause: error,
      });
    }
  }

  /** The objects of an example policy, with modules that policy servers can load. */
  async example(name: string): Promise<readonly object[]> {
    const text = await readFile(join(ROOT, 'examples', name, 'policy.yaml'), 'utf8');
    let served = text;
    for (const [reference, file, artifact] of text.matchAll(EXAMPLE_MODULE)) {
      const module = file ?? artifact ?? '';
      const bytes = await readFile(join(ROOT, 'examples', module, 'policy.wasm'));
      const url = this.web.put(`${module}.wasm`, { kind: 'serve', bytes });
      served = served.replaceAll(reference, url);
    }
    return manifestsOf(served, name);
  }

  /** The response to the creation of an object, as a dry run: `201`, or the status code and the message. */
  async answer(path: string, object: object): Promise<string> {
    const { status, body } = await this.cluster.request<{ message?: string }>('POST', `${path}?dryRun=All`, object);
    return status === 201 ? '201' : `${status} ${body.message ?? ''}`;
  }

  /** All objects of the cluster, except {@link TRANSIENT} ones. */
  async inventory(): Promise<Inventory> {
    const listed = await this.kubectl(['api-resources', '--verbs=list', '-o', 'name']);
    const resources = listed.split('\n').filter((name) => name !== '' && !TRANSIENT.includes(name));
    const objects = await this.kubectl(['get', resources.join(','), '-A', '-o', 'json', '--ignore-not-found']);
    const { items } = JSON.parse(objects === '' ? '{"items":[]}' : objects) as { items: readonly KubernetesObject[] };
    return new Set(
      items.map(
        ({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.namespace ?? ''}/${metadata.name}`,
      ),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

function chart(name: string): string {
  return join(ROOT, 'deploy', 'charts', name);
}

function succeeded({ code, stdout, stderr }: KubectlResult, what: string): string {
  assert.equal(code, 0, `${what}: ${stderr}${stdout}`);
  return stdout;
}
