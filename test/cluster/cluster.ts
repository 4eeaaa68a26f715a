// A real Kubernetes API server for tests: etcd and kube-apiserver on loopback, and the controllers of Kubernetes if asked for.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiResponse, type KubernetesObject, requestApi, type RequestForm } from './api-request.ts';
import { clusterAvailable } from './binaries.ts';
import type { ClusterBinaries } from './binaries.ts';
import {
  apiServerArgs,
  clusterNetwork,
  controllerManagerArgs,
  etcdArgs,
  type Ports,
  writeCredentials,
} from './cluster-arguments.ts';
import { type KubectlResult, runClient } from './client-command.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { SupervisedProcess } from './supervised-process.ts';

export type { ApiResponse, KubernetesObject } from './api-request.ts';
export type { KubectlResult } from './client-command.ts';

/** The name of the user whom everything is allowed; each request is made as this one unless it names another. */
export const ADMIN = 'admin';

/** How long etcd and the API server may take to become ready: 3 s here, ten times as much on a machine under load. */
const START_TIMEOUT_MS = 90_000;

/** Room that the data of a cluster needs: etcd preallocates 64 MiB log segments; small /dev/shm mounts (containers) are passed over. */
const DATA_BYTES = 512 * 1024 ** 2;

/** How often a start is tried when another process took a free port before ours could. */
const START_ATTEMPTS = 3;
/** How often, and after how long, what was killed is started again on a port that somebody else has just then. Milliseconds. */
const REVIVALS = 5;
const REVIVAL_PAUSE_MS = 2_000;

/** A user without rights of its own; tests grant them with RBAC objects. */
export interface ClusterUser {
  /** Groups besides `system:authenticated`, which everyone is in. Default: none. */
  readonly groups?: readonly string[];
}

/** What {@link startCluster} may be told. */
export interface ClusterOptions {
  /** Users besides {@link ADMIN}, by name. Default: none. */
  readonly users?: Readonly<Record<string, ClusterUser>>;
  /** More arguments for kube-apiserver, such as `--feature-gates=X=true`. Default: none. */
  readonly apiServerArgs?: readonly string[];
  /**
   * Run kube-controller-manager, too: Deployments and Jobs get their Pods, namespaces a service account and the root CA, what has
   * no owner any more is deleted, deleted namespaces are emptied. Default: false.
   */
  readonly controllers?: boolean;
  /** The programs to use. Default: those that {@link clusterAvailable} finds. */
  readonly binaries?: ClusterBinaries;
  /** Aborts the start. */
  readonly signal?: AbortSignal;
}

/** How kubectl or helm is run. */
export interface ClientOptions {
  readonly stdin?: string;
  /** Default: the admin. */
  readonly user?: string;
  /** Default: 60,000. */
  readonly timeoutMs?: number;
}

/** Where processes are in the list of a cluster. */
const PROCESS_INDEX = { 'kube-apiserver': 0, etcd: 1 } as const;

/** Until the controllers have given the namespace "default" what each gets: 1 s here. */
const CONTROLLERS_TIMEOUT_MS = 60_000;

/** A running API server with its etcd. Get one with {@link startCluster}; `await using` stops it at the end of the scope. */
export class Cluster implements AsyncDisposable {
  /** `https://127.0.0.1:PORT` */
  readonly url: string;
  /** The temporary folder of this cluster: logs, keys, etcd's data. Gone after {@link stop}. */
  readonly folder: string;
  /** File with the certificate authority that {@link url} is verified with. */
  readonly caFile: string;
  /** File for KUBECONFIG, readable by this user only: the admin, and each user of the options under its name. */
  readonly kubeconfig: string;
  /** The API server, then etcd. */
  readonly #processes: SupervisedProcess[];
  #controllers: SupervisedProcess | undefined;
  readonly #tokens: ReadonlyMap<string, string>;
  readonly #binaries: ClusterBinaries;
  readonly #agent: Agent;

  constructor(parts: {
    url: string;
    folder: string;
    caFile: string;
    tokens: ReadonlyMap<string, string>;
    binaries: ClusterBinaries;
    processes: readonly SupervisedProcess[];
  }) {
    this.url = parts.url;
    this.folder = parts.folder;
    this.caFile = parts.caFile;
    this.#tokens = parts.tokens;
    this.#binaries = parts.binaries;
    this.#processes = [...parts.processes];
    this.#agent = new Agent({ keepAlive: true, ca: readFileSync(this.caFile) });
    this.kubeconfig = join(this.folder, 'kubeconfig.json');
    writeFileSync(this.kubeconfig, JSON.stringify(this.#kubeconfigObject()), { mode: 0o600 });
  }

  /** Bearer token of the admin. */
  get adminToken(): string {
    return this.token(ADMIN);
  }

  /** Bearer token of a user of the options. */
  token(user: string): string {
    const token = this.#tokens.get(user);
    if (token === undefined) {
      throw new Error(`the cluster has no user ${user}: expected one of ${[...this.#tokens.keys()].join(', ')}`);
    }
    return token;
  }

  /** Where addresses of Services and Pods begin, such as `127.150.12`; Services have 0 to 127 in the end, Pods the rest. */
  get network(): string {
    return clusterNetwork(Number(new URL(this.url).port));
  }

  /** Runs kubectl against this cluster as the admin or `user`, with `stdin` as its input; at most `timeoutMs` (default 60,000). */
  kubectl(args: readonly string[], options: ClientOptions = {}): Promise<KubectlResult> {
    return this.#client(this.#binaries.kubectl, ['--context', options.user ?? ADMIN, ...args], options);
  }

  /** Runs helm against this cluster, as {@link kubectl} is run. */
  helm(args: readonly string[], options: ClientOptions = {}): Promise<KubectlResult> {
    return this.#client(this.#binaries.helm, ['--kube-context', options.user ?? ADMIN, ...args], options);
  }

  #client(program: string, args: readonly string[], options: ClientOptions): Promise<KubectlResult> {
    return runClient(program, args, { ...options, kubeconfig: this.kubeconfig, folder: this.folder });
  }

  /**
   * Makes one API request as the admin or `user`. A PATCH body is a JSON merge patch unless `contentType` says otherwise.
   * `accept` asks for another form of the answer, such as a table.
   */
  request<T = KubernetesObject>(
    method: string,
    path: string,
    body?: unknown,
    options: RequestForm & { readonly user?: string } = {},
  ): Promise<ApiResponse<T>> {
    const { user = ADMIN, ...rest } = options;
    return requestApi<T>(method, new URL(path, this.url), body, {
      ...rest,
      agent: this.#agent,
      token: this.token(user),
    });
  }

  /** Makes the request and returns the body, or throws with the server's message when the status is 400 or more. */
  async expect<T = KubernetesObject>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.request<T>(method, path, body);
    if (response.status >= 400) {
      const message = (response.body as { message?: string }).message ?? String(response.body);
      throw new Error(`${method} ${path}: expected success, got ${response.status}: ${message}`);
    }
    return response.body;
  }

  /** Creates a namespace. Nothing else is in it: no controller runs that adds a service account or a root CA. */
  createNamespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<KubernetesObject> {
    return this.expect('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels },
    });
  }

  /** The last lines of the API server's log, for messages of failed tests. */
  apiServerLog(lines = 50): string {
    return this.#processes[0]?.logTail(lines) ?? '';
  }

  /** Kills the API server or etcd at once, as a lost machine would. Everything else runs on, for {@link revive}. */
  async crash(which: 'kube-apiserver' | 'etcd'): Promise<void> {
    await this.#processes[PROCESS_INDEX[which]]?.kill();
  }

  /**
   * Starts what was killed again, on its own port and data, and waits until the API server is ready. Connections of other tests
   * may have taken the port for a moment: it is tried again.
   */
  async revive(): Promise<void> {
    for (let left = REVIVALS; ; left -= 1) {
      try {
        await this.#revive();
        return;
      } catch (error) {
        if (left === 1 || !String(error).includes('address already in use')) {
          throw error;
        }
        await sleep(REVIVAL_PAUSE_MS);
      }
    }
  }

  async #revive(): Promise<void> {
    for (const [index, process] of this.#processes.entries()) {
      if (process.exit !== undefined) {
        this.#processes[index] = new SupervisedProcess(process.options);
      }
    }
    const [server, etcd] = this.#processes;
    if (server !== undefined && etcd !== undefined) {
      await becomeReady({ server, etcd, signal: undefined }, () => this);
    }
  }

  /** Starts kube-controller-manager, and waits until it works. */
  async startControllers(): Promise<void> {
    const logFile = join(this.folder, 'kube-controller-manager.log');
    const args = controllerManagerArgs(this.folder, this.kubeconfig);
    const controllers = new SupervisedProcess({ program: this.#binaries['kube-controller-manager'], args, logFile });
    this.#controllers = controllers;
    await eventually(
      async () => {
        await this.expect('GET', '/api/v1/namespaces/default/serviceaccounts/default');
        await this.expect('GET', '/api/v1/namespaces/default/configmaps/kube-root-ca.crt');
      },
      { timeoutMs: CONTROLLERS_TIMEOUT_MS },
    ).catch((error: unknown) => {
      throw new Error(`kube-controller-manager does not work. The end of its log:\n${controllers.logTail()}`, {
        cause: error,
      });
    });
  }

  /** Stops the API server, then etcd, and deletes their data. Idempotent. */
  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.#controllers?.stop();
    await stopAll(this.#processes, this.folder);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  // JSON is YAML, so kubectl reads it.
  #kubeconfigObject(): object {
    const users = [...this.#tokens.keys()];
    return {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: this.url, 'certificate-authority': this.caFile } }],
      users: users.map((name) => ({ name, user: { token: this.token(name) } })),
      contexts: users.map((name) => ({ name, context: { cluster: 'test', user: name } })),
      'current-context': ADMIN,
    };
  }
}

/**
 * Starts etcd and kube-apiserver and waits until the API server is ready and has made its own objects. Everything listens on
 * loopback, is in one temporary folder (in memory where there is room), and ends when this process does, however that happens.
 * @throws Error when programs are missing (it says how to build them) or one did not become ready (with the end of its log).
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const binaries = options.binaries ?? foundBinaries();
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(binaries, options);
    } catch (error) {
      if (
        attempt === START_ATTEMPTS ||
        !(error instanceof Error) ||
        !error.message.includes('address already in use')
      ) {
        throw error;
      }
    }
  }
}

function foundBinaries(): ClusterBinaries {
  const availability = clusterAvailable();
  if (!availability.available) {
    throw new Error(availability.reason);
  }
  return availability.binaries;
}

async function startOnce(binaries: ClusterBinaries, options: ClusterOptions): Promise<Cluster> {
  const folder = mkdtempSync(join(dataParent(), 'portcullis-cluster-'));
  const processes: SupervisedProcess[] = [];
  let started: Cluster | undefined;
  try {
    const [etcdClient, etcdPeer, apiServer] = await freePorts(3);
    const ports: Ports = { etcdClient: etcdClient ?? 0, etcdPeer: etcdPeer ?? 0, apiServer: apiServer ?? 0 };
    const users = { ...options.users, [ADMIN]: { groups: ['system:masters'] } };
    const tokens = new Map(Object.keys(users).map((name) => [name, randomBytes(24).toString('base64url')]));
    writeCredentials(folder, users, tokens);
    const controllers = options.controllers === true;
    const etcd = new SupervisedProcess({
      program: binaries.etcd,
      args: etcdArgs(folder, ports),
      logFile: join(folder, 'etcd.log'),
      // etcd's is the last to end when everything is ended at once, and the API server creates no files by then.
      scratch: folder,
    });
    processes.unshift(etcd);
    // The API server waits for etcd itself, so both start at once.
    const server = new SupervisedProcess({
      program: binaries['kube-apiserver'],
      args: [...apiServerArgs(folder, ports, controllers), ...(options.apiServerArgs ?? [])],
      logFile: join(folder, 'kube-apiserver.log'),
    });
    processes.unshift(server);
    const cluster = await becomeReady({ server, etcd, signal: options.signal }, () => {
      const url = `https://127.0.0.1:${ports.apiServer}`;
      const caFile = join(folder, 'certs', 'apiserver.crt');
      return new Cluster({ url, folder, caFile, tokens, binaries, processes });
    });
    if (controllers) {
      started = cluster;
      await cluster.startControllers();
    }
    return cluster;
  } catch (error) {
    await started?.stop();
    await stopAll(processes, folder);
    throw error;
  }
}

/** Waits until the API server says that it is ready and the namespace `default` exists, which it creates a moment later. */
async function becomeReady(
  parts: { server: SupervisedProcess; etcd: SupervisedProcess; signal: AbortSignal | undefined },
  connect: () => Cluster,
): Promise<Cluster> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  let cluster: Cluster | undefined;
  let last = 'no answer yet';
  for (;;) {
    parts.signal?.throwIfAborted();
    for (const [name, child] of [['etcd', parts.etcd] as const, ['kube-apiserver', parts.server] as const]) {
      if (child.exit !== undefined) {
        throw new Error(
          `${name} ${child.exit} while the test cluster started. The end of its log:\n${child.logTail()}`,
        );
      }
    }
    try {
      // Fails until the API server has written its certificate, and must read it again when that was only half of it.
      cluster ??= connect();
      const ready = await cluster.request<string>('GET', '/readyz');
      const namespace = await cluster.request('GET', '/api/v1/namespaces/default');
      if (ready.status === 200 && namespace.status === 200) {
        return cluster;
      }
      last = `/readyz ${ready.status}, namespace "default" ${namespace.status}`;
    } catch (error) {
      cluster = undefined;
      last = error instanceof Error ? error.message : String(error);
    }
    if (performance.now() > deadline) {
      throw new Error(
        `kube-apiserver is not ready after ${START_TIMEOUT_MS / 1000} s (${last}). The end of its log:\n${parts.server.logTail()}`,
      );
    }
    await sleep(50);
  }
}

/** /dev/shm where it has room, because etcd syncs every write to its disk; else the folder for temporary files. */
function dataParent(): string {
  try {
    const memory = statfsSync('/dev/shm');
    return memory.bavail * memory.bsize >= DATA_BYTES ? '/dev/shm' : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** In order, so that the API server does not spend its last seconds looking for etcd. */
async function stopAll(processes: readonly SupervisedProcess[], folder: string): Promise<void> {
  for (const child of processes) {
    await child.stop();
  }
  rmSync(folder, { recursive: true, force: true });
}
