// A node for tests: runs the Pods of a cluster as processes of this machine, and routes connections to Services.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { isNotFound, KubernetesCluster, tokenCredentials } from '../../../src/cluster/index.ts';
import {
  type JsonObject,
  type KubernetesObject,
  kubernetesKind,
  type ResourceType,
} from '../../../src/resources/index.ts';
import { type ObjectCache, SharedCaches } from '../../../src/runtime/index.ts';
import type { Cluster } from '../cluster.ts';
import type { Pod } from './pod.ts';
import { decoded, type PodMount } from './pod-volumes.ts';
import { RunningPod } from './running-pod.ts';
import { routesOf, type Service, ServiceProxy } from './service-proxy.ts';

/** The last byte of the first address of Pods. Services have lower ones; 255 is not used. */
const FIRST_POD_ADDRESS = 128;
const LAST_POD_ADDRESS = 254;
/** Delay between a change of a Pod and new routes, like that of kube-proxy in a cluster without load. Milliseconds. */
const ENDPOINT_DELAY_MS = 200;
/** Delay between a change of a Secret and new files. A kubelet takes up to a minute. Milliseconds. */
const VOLUME_DELAY_MS = 100;

/** Loaded into programs of Pods. */
export const POD_NETWORK = fileURLToPath(new URL('./pod-network.ts', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../../bin/portcullis.mjs', import.meta.url));

/** Returns the command that runs an image in a Pod. Undefined when the image does not exist. */
export type ImageCommand = (image: string, pod: Pod, mounts: readonly PodMount[]) => readonly string[] | undefined;

export interface NodeOptions {
  /** Default: `node-1`. */
  readonly name?: string;
  /** Default: {@link portcullisImage}. */
  readonly image?: ImageCommand;
  /** Whether commands of images mount volumes. Default: false, their folders replace mount paths in arguments and variables. */
  readonly hasMounts?: boolean;
  /** Delay between a change of a Pod and new routes. Milliseconds. Default: 200. */
  readonly endpointDelayMs?: number;
  /** Delay between a change of a Secret or ConfigMap and new files. Milliseconds. Default: 100. */
  readonly volumeDelayMs?: number;
}

/** Runs this checkout for images with `portcullis` in their name. */
export function portcullisImage(image: string): readonly string[] | undefined {
  return image.includes('portcullis') ? podCommand(PROGRAM) : undefined;
}

/** The command that runs a Node.js program in a Pod. */
export function podCommand(program: string): readonly string[] {
  return [process.execPath, '--import', POD_NETWORK, program];
}

/** Starts a node, and waits until its caches are synced. `await using` stops it. */
export async function startNode(cluster: Cluster, options: NodeOptions = {}): Promise<TestNode> {
  const node = new TestNode(cluster, options);
  try {
    await node.start();
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
}

export class TestNode implements AsyncDisposable {
  readonly name: string;
  /** Tests may change it at any time. */
  volumeDelayMs: number;
  endpointDelayMs: number;
  readonly #cluster: Cluster;
  readonly #client: KubernetesCluster;
  readonly #image: ImageCommand;
  readonly #hasMounts: boolean;
  readonly #folder: string;
  readonly #proxy: ServiceProxy;
  readonly #running = new Map<string, RunningPod>();
  readonly #ending = new Map<string, Promise<void>>();
  readonly #binding = new Set<string>();
  readonly #addresses = new Set<number>();
  readonly #stopping = new AbortController();
  readonly #caches: SharedCaches;
  readonly #pods: ObjectCache<Pod>;
  readonly #services: ObjectCache<Service>;
  readonly #secrets: ObjectCache;
  readonly #configMaps: ObjectCache;
  /** Errors of the node itself, for messages of failed tests. */
  readonly problems: string[] = [];
  #following: Promise<void> | undefined;
  #lastAddress = FIRST_POD_ADDRESS - 1;

  constructor(cluster: Cluster, options: NodeOptions) {
    this.name = options.name ?? 'node-1';
    this.volumeDelayMs = options.volumeDelayMs ?? VOLUME_DELAY_MS;
    this.endpointDelayMs = options.endpointDelayMs ?? ENDPOINT_DELAY_MS;
    this.#image = options.image ?? portcullisImage;
    this.#hasMounts = options.hasMounts ?? false;
    this.#cluster = cluster;
    this.#folder = join(cluster.folder, this.name);
    mkdirSync(this.#folder);
    this.#proxy = new ServiceProxy((text) => this.problems.push(text));
    this.#client = new KubernetesCluster(
      {
        server: cluster.url,
        ca: readFileSync(cluster.caFile, 'utf8'),
        credentials: tokenCredentials(cluster.adminToken),
      },
      { fieldManager: 'kubelet', userAgent: 'kubelet' },
    );
    this.#caches = new SharedCaches({ cluster: this.#client, log: pino({ enabled: false }) });
    this.#pods = this.#caches.cache(type<Pod>('Pod'));
    this.#services = this.#caches.cache(type<Service>('Service'));
    this.#secrets = this.#caches.cache(type('Secret'));
    this.#configMaps = this.#caches.cache(type('ConfigMap'));
  }

  async start(): Promise<void> {
    await this.#client.create(type('Node'), { apiVersion: 'v1', kind: 'Node', metadata: { name: this.name } });
    const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }];
    const status = { conditions, allocatable: { cpu: '64', memory: '256Gi', pods: '110' } };
    await this.#client.patch(
      type('Node'),
      { name: this.name },
      { type: 'merge', body: { status } },
      { subresource: 'status' },
    );
    this.#following = this.#caches.start(this.#stopping.signal);
    await this.#caches.ready;
    this.#pods.subscribe(({ after }) => {
      if (after !== undefined) {
        this.#onPod(after);
      }
      this.#endDeleted();
      this.#reroute();
    });
    this.#services.subscribe(() => this.#reroute());
    const contents = [
      ['secret', this.#secrets],
      ['configMap', this.#configMaps],
    ] as const;
    for (const [kind, cache] of contents) {
      cache.subscribe(({ after, before }) => {
        const { name = '', namespace = '' } = (after ?? before).metadata;
        setTimeout(() => this.#refill(kind, namespace, name), this.volumeDelayMs).unref();
      });
    }
  }

  /** The running Pods of a namespace with these labels, without terminating ones. */
  pods(namespace: string, labels: Readonly<Record<string, string>> = {}): readonly RunningPod[] {
    return [...this.#running.values()].filter(
      ({ pod: { metadata } }) =>
        metadata.namespace === namespace &&
        !this.#ending.has(metadata.uid) &&
        Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value),
    );
  }

  /** The output of all running Pods, for messages of failed tests. */
  logs(): string {
    return [...this.#running.values()].map(({ name, log }) => `── ${name}\n${log}`).join('\n');
  }

  /** Kills the processes of all Pods. The Pod objects are not deleted. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#proxy.stop();
    await Promise.all([...this.#running.values()].map((pod) => pod.end()));
    await Promise.all(this.#ending.values());
    await this.#following?.catch(() => undefined);
    this.#client.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Reconciles a Pod: schedules it, starts it, or ends it. */
  #onPod(pod: Pod): void {
    const { uid, deletionTimestamp } = pod.metadata;
    if (this.#stopping.signal.aborted) {
      return;
    }
    if (pod.spec.nodeName === undefined) {
      this.#bind(pod);
      return;
    }
    if (pod.spec.nodeName !== this.name) {
      return;
    }
    if (deletionTimestamp !== undefined) {
      this.#end(pod);
    } else if (!this.#running.has(uid) && !['Succeeded', 'Failed'].includes(pod.status?.phase ?? '')) {
      this.#start(pod);
    }
  }

  /** Binds a Pod to this node, as a scheduler does. */
  #bind(pod: Pod): void {
    const { uid, name, namespace, deletionTimestamp } = pod.metadata;
    if (this.#binding.has(uid) || deletionTimestamp !== undefined) {
      return;
    }
    this.#binding.add(uid);
    const target = { apiVersion: 'v1', kind: 'Node', name: this.name };
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target };
    void this.#client
      .request('POST', `/api/v1/namespaces/${namespace}/pods/${name}/binding`, { body })
      .catch((error: unknown) => this.#failed(`binding ${name}`, error))
      .finally(() => this.#binding.delete(uid));
  }

  #start(pod: Pod): void {
    const { name = '', namespace, uid } = pod.metadata;
    const address = this.#nextAddress();
    const running = new RunningPod({
      pod,
      address,
      folder: join(this.#folder, uid),
      image: this.#image,
      hasMounts: this.#hasMounts,
      contents: {
        secret: (where, what) => filesOf(this.#secrets.get({ namespace: where, name: what })),
        configMap: (where, what) => filesOf(this.#configMaps.get({ namespace: where, name: what })),
        token: (owner, options) => this.#token(owner, options),
      },
      env: {
        PATH: process.env['PATH'] ?? '',
        // Images of the product have a compile cache, so the processes share one, too.
        ...(process.env['NODE_COMPILE_CACHE'] === undefined
          ? {}
          : { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }),
        KUBERNETES_SERVICE_HOST: new URL(this.#cluster.url).hostname,
        KUBERNETES_SERVICE_PORT: new URL(this.#cluster.url).port,
      },
      report: async (status) => {
        const body = { metadata: { uid }, status } as JsonObject;
        await this.#client.patch(type('Pod'), { namespace, name }, { type: 'merge', body }, { subresource: 'status' });
      },
    });
    this.#running.set(uid, running);
  }

  #end(pod: Pod): void {
    const { uid, name = '', namespace, deletionGracePeriodSeconds } = pod.metadata;
    if (this.#ending.has(uid)) {
      return;
    }
    const running = this.#running.get(uid);
    const end = async (): Promise<void> => {
      await running?.stop(deletionGracePeriodSeconds);
      try {
        const options = { gracePeriodSeconds: 0, preconditions: { uid } };
        await this.#client.delete(type('Pod'), { namespace, name }, options);
      } catch (error) {
        this.#failed(`deleting ${name}`, error);
      }
      this.#forget(uid);
    };
    this.#ending.set(
      uid,
      end().finally(() => this.#ending.delete(uid)),
    );
  }

  /** Ends the Pods that were deleted without a grace period. */
  #endDeleted(): void {
    for (const [uid, running] of this.#running) {
      const { namespace, name = '' } = running.pod.metadata;
      if (!this.#ending.has(uid) && this.#pods.get({ namespace, name })?.metadata.uid !== uid) {
        const end = running.stop().then(() => this.#forget(uid));
        this.#ending.set(
          uid,
          end.finally(() => this.#ending.delete(uid)),
        );
      }
    }
  }

  #forget(uid: string): void {
    const address = this.#running.get(uid)?.address;
    this.#running.delete(uid);
    this.#addresses.delete(Number(address?.split('.')[3]));
  }

  /** The next free address after the last one, so that an address is not reused soon. */
  #nextAddress(): string {
    const count = LAST_POD_ADDRESS - FIRST_POD_ADDRESS + 1;
    for (let step = 1; step <= count; step += 1) {
      const address = FIRST_POD_ADDRESS + ((this.#lastAddress - FIRST_POD_ADDRESS + step) % count);
      if (!this.#addresses.has(address)) {
        this.#addresses.add(address);
        this.#lastAddress = address;
        return `${this.#cluster.network}.${address}`;
      }
    }
    throw new Error(`the node of the tests has ${count} addresses for Pods, and all are taken`);
  }

  async #token(
    { metadata, spec }: Pod,
    { audience, expirationSeconds }: { readonly audience?: string; readonly expirationSeconds?: number },
  ): Promise<string> {
    const { namespace, name, uid } = metadata;
    const account = spec.serviceAccountName ?? 'default';
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        ...(audience === undefined ? {} : { audiences: [audience] }),
        ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      },
    };
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
    const { status } = await this.#cluster.expect<{ readonly status: { readonly token: string } }>(
      'POST',
      path,
      request,
    );
    return status.token;
  }

  #refill(kind: 'secret' | 'configMap', namespace: string, name: string): void {
    for (const pod of this.pods(namespace)) {
      void pod.updateVolumes(kind, name);
    }
  }

  #reroute(): void {
    const routes = routesOf(this.#services.list(), this.#pods.list());
    const follow = (): void => {
      if (!this.#stopping.signal.aborted) {
        this.#proxy.route(routes);
      }
    };
    setTimeout(follow, this.endpointDelayMs).unref();
  }

  #failed(what: string, error: unknown): void {
    if (!isNotFound(error) && !this.#stopping.signal.aborted) {
      this.problems.push(`${what}: ${String(error)}`);
    }
  }
}

function type<T extends KubernetesObject>(kind: string): ResourceType<T> {
  const found = kubernetesKind('v1', kind);
  if (found === undefined) {
    throw new Error(`no kind ${kind} of v1`);
  }
  return found;
}

/** The data of a Secret or ConfigMap as files. */
function filesOf(object: KubernetesObject | undefined): ReadonlyMap<string, Buffer> | undefined {
  if (object === undefined) {
    return undefined;
  }
  const { kind, data, binaryData } = object as KubernetesObject & {
    readonly data?: Readonly<Record<string, string>>;
    readonly binaryData?: Readonly<Record<string, string>>;
  };
  if (kind === 'Secret') {
    return decoded(data);
  }
  const texts = Object.entries(data ?? {}).map(([key, text]) => [key, Buffer.from(text)] as const);
  return new Map([...texts, ...decoded(binaryData)]);
}
