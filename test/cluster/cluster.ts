// A real Kubernetes API server for tests: etcd and kube-apiserver on loopback, and optionally kube-controller-manager.
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
  type ClusterUser,
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

/** The user with all rights. Requests that name no user are made as this one. */
export const ADMIN = 'admin';

/** Time limit for the start of etcd and the API server. It takes 3 s, and ten times as long on a machine under load. */
const START_TIMEOUT_MS = 90_000;

/** The heap of kube-apiserver lives for a minute: collecting garbage rarely saves a quarter of its CPU time. */
const API_SERVER_GOGC = '400';

/** Free space that a cluster needs. etcd preallocates log segments of 64 MiB. In containers, /dev/shm is often smaller. */
const DATA_BYTES = 512 * 1024 ** 2;

/** Attempts to start a cluster. An attempt fails when another process takes a port that was free. */
const START_ATTEMPTS = 3;
/** Attempts to restart a killed process, and the delay between them. Another process may have its port for a moment. Milliseconds. */
const REVIVALS = 5;
const REVIVAL_PAUSE_MS = 2_000;

/** Options of {@link startCluster}. */
export interface ClusterOptions {
  /** Users besides {@link ADMIN}, by name. Default: none. */
  readonly users?: Readonly<Record<string, ClusterUser>>;
  /** More arguments for kube-apiserver, such as `--feature-gates=X=true`. Default: none. */
  readonly apiServerArgs?: readonly string[];
  /**
   * Whether to run kube-controller-manager, with the controllers of workloads, service accounts, the root CA, namespaces, and garbage
   * collection. Default: false.
   */
  readonly controllers?: boolean;
  /** The programs to use. Default: those that {@link clusterAvailable} finds. */
  readonly binaries?: ClusterBinaries;
  /** Aborts the start. */
  readonly signal?: AbortSignal;
}

/** Options of a kubectl or helm command. */
export interface ClientOptions {
  readonly stdin?: string;
  /** Default: the admin. */
  readonly user?: string;
  /** Default: 60,000. */
  readonly timeoutMs?: number;
}

/** Positions in the list of processes. */
const PROCESS_INDEX = { 'kube-apiserver': 0, etcd: 1 } as const;

/** Time limit for the controllers to create the service account and root CA of the namespace "default". It takes 1 s. */
const CONTROLLERS_TIMEOUT_MS = 60_000;

/** A running API server with its etcd. {@link startCluster} creates it; `await using` stops it at the end of the scope. */
export class Cluster implements AsyncDisposable {
  /** `https://127.0.0.1:PORT` */
  readonly url: string;
  /** The temporary folder with logs, keys, and the data of etcd. {@link stop} deletes it. */
  readonly folder: string;
  /** The file with the CA that the server at {@link url} is verified with. */
  readonly caFile: string;
  /** A kubeconfig with mode 0600. It has contexts for the admin and each user of the options. */
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
    this.#writeKubeconfig(this.kubeconfig, [...this.#tokens.keys()], ADMIN);
  }

  /** Writes a kubeconfig of one user, with a namespace for commands that name none. Returns its file. */
  kubeconfigOf(user: string, namespace = 'default'): string {
    this.token(user);
    const file = join(this.folder, `kubeconfig-${user}.json`);
    this.#writeKubeconfig(file, [user], user, namespace);
    return file;
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

  /** The first three bytes of addresses, such as `127.150.12`. The last byte is 0 to 127 for Services, and higher for Pods. */
  get network(): string {
    return clusterNetwork(Number(new URL(this.url).port));
  }

  /** Runs kubectl against this cluster as the admin or `user`. */
  kubectl(args: readonly string[], options: ClientOptions = {}): Promise<KubectlResult> {
    return this.#client(this.#binaries.kubectl, ['--context', options.user ?? ADMIN, ...args], options);
  }

  /** Runs helm against this cluster as the admin or `user`. */
  helm(args: readonly string[], options: ClientOptions = {}): Promise<KubectlResult> {
    return this.#client(this.#binaries.helm, ['--kube-context', options.user ?? ADMIN, ...args], options);
  }

  #client(program: string, args: readonly string[], options: ClientOptions): Promise<KubectlResult> {
    return runClient(program, args, { ...options, kubeconfig: this.kubeconfig, folder: this.folder });
  }

  /**
   * Sends an API request as the admin or `user`. By default, the body of a PATCH is a JSON merge patch. `accept` requests another
   * representation of the response, such as a table.
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

  /** Sends a request and returns the response body. Throws an error with the server's message when the status is 400 or more. */
  async expect<T = KubernetesObject>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.request<T>(method, path, body);
    if (response.status >= 400) {
      const message = (response.body as { message?: string }).message ?? String(response.body);
      throw new Error(`${method} ${path}: expected success, got ${response.status}: ${message}`);
    }
    return response.body;
  }

  /** Creates a namespace. Without controllers, it has neither a service account nor a root CA. */
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

  /** Kills the API server or etcd, as if its machine was lost. {@link revive} starts it again. */
  async crash(which: 'kube-apiserver' | 'etcd'): Promise<void> {
    await this.#processes[PROCESS_INDEX[which]]?.kill();
  }

  /**
   * Restarts killed processes with their ports and data, and waits until the API server is ready. Retries, because a connection of
   * another test may have the port for a moment.
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

  /** Starts kube-controller-manager, and waits until the namespace "default" is complete. */
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

  // kubectl reads JSON, because JSON is YAML.
  #writeKubeconfig(file: string, users: readonly string[], current: string, namespace = 'default'): void {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: this.url, 'certificate-authority': this.caFile } }],
      users: users.map((name) => ({ name, user: { token: this.token(name) } })),
      contexts: users.map((name) => ({ name, context: { cluster: 'test', user: name, namespace } })),
      'current-context': current,
    };
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  }
}

/**
 * Starts etcd and kube-apiserver, and waits until the API server is ready and has created its default objects. All processes
 * listen on loopback, and end when this process ends or is killed. All files are in one temporary folder, in memory if there is
 * enough space.
 * @throws Error when a program is missing (it says how to build it), or does not become ready (it has the end of the log).
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
      // The supervisor of etcd deletes the folder, because etcd ends last: the API server creates no files any more.
      scratch: folder,
    });
    processes.unshift(etcd);
    // Both start at the same time, because the API server waits for etcd.
    const server = new SupervisedProcess({
      program: binaries['kube-apiserver'],
      args: [...apiServerArgs(folder, ports, controllers), ...(options.apiServerArgs ?? [])],
      logFile: join(folder, 'kube-apiserver.log'),
      env: { ...process.env, GOGC: API_SERVER_GOGC },
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

/** Waits until the API server is ready, and has created the namespace `default`, a moment later. */
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
      // The API server may not have written its certificate yet, or only a part of it.
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

/** The folder for data: /dev/shm if it has space, because etcd syncs each write to disk; else the folder for temporary files. */
function dataParent(): string {
  try {
    const memory = statfsSync('/dev/shm');
    return memory.bavail * memory.bsize >= DATA_BYTES ? '/dev/shm' : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** Stops processes one after the other. The API server must stop first, because it would retry to reach etcd for seconds. */
async function stopAll(processes: readonly SupervisedProcess[], folder: string): Promise<void> {
  for (const child of processes) {
    await child.stop();
  }
  rmSync(folder, { recursive: true, force: true });
}
