// A real API server with a controller and a policy server as processes, for benches that measure requests to it.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ALL_KINDS, customResourceDefinition } from '../src/resources/index.ts';
import { ensureLocalCertificates, type LocalCertificates } from '../src/control/certificates/index.ts';
import { VARIABLES } from '../tools/image/image-config.ts';
import { type Cluster, startCluster } from '../test/cluster/cluster.ts';
import { freePorts } from '../test/cluster/free-ports.ts';
import {
  webhookConfiguration,
  webhookConfigurationPath,
  type WebhookOptions,
} from '../test/cluster/webhook-configuration.ts';
import { LabProcess } from '../test/lifecycle/rollout-lab-process.ts';
import { LineProcess } from './processes.ts';

/** Objects that are created concurrently during the setup. */
const AT_ONCE = 16;
const NAMESPACE = 'portcullis';
/** The built command line, as packages have it, runs with the variables of the image: sources take 60 MiB more. */
const BUILT_PROGRAM = fileURLToPath(new URL('../dist/cli/program/main.js', import.meta.url));
export const POLICIES_API = 'policies.kubewarden.io/v1';
/** Time until all policies are Active: 3,500 took two minutes. Milliseconds. */
const ACTIVE_MS = 900_000;

/** Pause between two lists of policies, at least, and in times of a list: thousands of policies are megabytes. Milliseconds. */
const LEAST_POLL_MS = 250;
const POLL_PAUSES = 4;

/** An object, and the path to create it at. */
export interface NewObject {
  readonly path: string;
  readonly object: object;
}

export class Scene implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly #folder: string;
  readonly #certificates: LocalCertificates;
  readonly #stack: AsyncDisposableStack;
  #server: LabProcess | undefined;
  #controller: LabProcess | undefined;

  private constructor(
    cluster: Cluster,
    parts: { folder: string; certificates: LocalCertificates; stack: AsyncDisposableStack },
  ) {
    this.cluster = cluster;
    this.#folder = parts.folder;
    this.#certificates = parts.certificates;
    this.#stack = parts.stack;
  }

  /** Starts the API server, with our kinds and a PolicyServer. */
  static async open(): Promise<Scene> {
    await using stack = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
    stack.defer(() => rmSync(folder, { recursive: true, force: true }));
    const certificates = await ensureLocalCertificates(join(folder, 'pki'));
    const users = { controller: { groups: ['system:masters'] }, serve: { groups: ['system:masters'] } };
    const cluster = stack.use(await startCluster({ users }));
    for (const own of ALL_KINDS) {
      const definition = customResourceDefinition(own);
      await cluster.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    }
    await cluster.createNamespace(NAMESPACE);
    await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
    await cluster.expect('POST', `/apis/${POLICIES_API}/policyservers`, {
      apiVersion: POLICIES_API,
      kind: 'PolicyServer',
      metadata: { name: 'default' },
      spec: { image: 'portcullis', replicas: 1 },
    });
    return new Scene(cluster, { folder, certificates, stack: stack.move() });
  }

  get server(): LabProcess {
    return this.#server ?? notStarted();
  }

  get controller(): LabProcess {
    return this.#controller ?? notStarted();
  }

  /** The process of the API server. */
  get apiServerPid(): number {
    const folder = this.cluster.folder;
    const isApiServer = (pid: string): boolean => {
      try {
        const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return program.endsWith('/kube-apiserver') && args.some((arg) => arg.includes(folder));
      } catch {
        return false;
      }
    };
    return Number(readdirSync('/proc').find((entry) => /^\d+$/.test(entry) && isApiServer(entry)));
  }

  /** Starts the policy server and the controller, each with its own user, whose requests are exempt from policies. */
  async startProcesses(): Promise<void> {
    const { certFile, keyFile, caFile, controlCertFile, controlKeyFile } = this.#certificates;
    const control = {
      'control-cert-file': controlCertFile,
      'control-key-file': controlKeyFile,
      'control-ca-file': caFile,
    };
    const [free] = await freePorts(1);
    const port = String(free);
    this.#server = this.#start('serve', [], {
      ...control,
      port,
      'policy-server': 'default',
      'replica-name': 'bench',
      addr: '127.0.0.1',
      'readiness-probe-port': '0',
      'cert-file': certFile,
      'key-file': keyFile,
      'control-addr': '127.0.0.1',
      'control-port': '0',
      'policies-download-dir': join(this.#folder, 'data'),
    });
    await this.#server.logs('policy server ready');
    this.#controller = this.#start('controller', ['--no-leader-elect'], {
      ...control,
      'policy-server-url': `https://localhost:${port}`,
      'policy-server-ca-file': caFile,
      'operations-port': '0',
    });
    await this.#controller.logs('controller ready');
  }

  /** Starts a webhook that only allows. Returns its address. */
  async startBareWebhook(): Promise<string> {
    const bare = new LineProcess('./bare-webhook.ts', [this.#certificates.certFile, this.#certificates.keyFile]);
    this.#stack.defer(() => bare.end());
    return `https://localhost:${await bare.line()}`;
  }

  /** Registers a webhook for namespaces, or for objects, with a label. */
  async registerWebhook(name: string, { kind, url, rules, ...selectors }: RegisteredWebhook): Promise<void> {
    const configuration = webhookConfiguration({
      name,
      kind,
      url,
      caBundle: readFileSync(this.#certificates.caFile, 'utf8'),
      rules,
      ...selectors,
    });
    await this.cluster.expect('POST', webhookConfigurationPath(kind), configuration);
  }

  /** Creates objects, several concurrently. */
  async create(objects: readonly NewObject[]): Promise<void> {
    await inTurns(objects, AT_ONCE, ({ path, object }) => this.cluster.expect('POST', path, object));
  }

  /** Deletes objects by their paths, several concurrently. */
  async remove(paths: readonly string[]): Promise<void> {
    await inTurns(paths, AT_ONCE, (path) => this.cluster.expect('DELETE', path, { gracePeriodSeconds: 0 }));
  }

  /** Waits until all policies at a path are Active. */
  async active(path: string, count: number): Promise<void> {
    await this.#until(path, (items) => {
      const others = items.filter(({ status }) => status?.phase !== 'Active');
      return items.length - others.length >= count
        ? undefined
        : `${items.length - others.length} of ${count} policies are Active; ${JSON.stringify(others[0]?.status)}`;
    });
  }

  /** Waits until no policies are left at a path. */
  async gone(path: string): Promise<void> {
    await this.#until(path, ({ length }) => (length === 0 ? undefined : `${length} policies are left`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #until(path: string, problem: (items: readonly PolicyItem[]) => string | undefined): Promise<void> {
    const deadline = performance.now() + ACTIVE_MS;
    for (;;) {
      const began = performance.now();
      const { items } = await this.cluster.expect<{ items: readonly PolicyItem[] }>('GET', path);
      const found = problem(items);
      if (found === undefined) {
        return;
      }
      const now = performance.now();
      if (now > deadline) {
        throw new Error(found);
      }
      await sleep(Math.max(LEAST_POLL_MS, POLL_PAUSES * (now - began)));
    }
  }

  #start(
    command: 'controller' | 'serve',
    flags: readonly string[],
    options: Readonly<Record<string, string>>,
  ): LabProcess {
    const all = { ...options, kubeconfig: this.#kubeconfig(command), namespace: NAMESPACE };
    const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
    const child = new LabProcess(command, [command, ...flags, ...args], this.#folder, {
      program: BUILT_PROGRAM,
      env: VARIABLES,
    });
    this.#stack.defer(() => child.end('SIGKILL'));
    return child;
  }

  #kubeconfig(user: string): string {
    const file = join(this.#folder, `${user}.kubeconfig`);
    const config = JSON.parse(readFileSync(this.cluster.kubeconfig, 'utf8')) as object;
    writeFileSync(file, JSON.stringify({ ...config, 'current-context': user }), { mode: 0o600 });
    return file;
  }
}

interface PolicyItem {
  readonly status?: { readonly phase?: string };
}

type RegisteredWebhook = Pick<WebhookOptions, 'kind' | 'url' | 'rules' | 'namespaceSelector' | 'objectSelector'>;

/** Does something with each item, for at most `atOnce` items at a time. */
export async function inTurns<T>(
  items: readonly T[],
  atOnce: number,
  act: (item: T) => Promise<unknown>,
): Promise<void> {
  const waiting = [...items].toReversed();
  const worker = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      await act(next);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function notStarted(): never {
  throw new Error('the processes are not started');
}
