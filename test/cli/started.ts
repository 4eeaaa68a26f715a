// `portcullis start` as a process, on free ports, with its own home and data folder.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubernetesCluster, loadKubeconfig } from '../../src/cluster/index.ts';
import { clusterAvailable } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { COMMAND, type CommandResult, ENVIRONMENT, portcullis, ROOT, run } from './command.ts';

/** Time until its greeting, which takes a second on an idle machine. */
const START_MS = 60_000;

/** For tests that ask about no existing objects: the auditor is a fifth of what a start costs. */
export const WITHOUT_AUDITOR = '--no-auditor';

/** The processes of a cluster. */
export const ROLES = ['apiserver', 'controller', 'policy-server', 'auditor'] as const;
type RoleName = (typeof ROLES)[number];
/** The commands that they are. */
const COMMANDS: Readonly<Record<string, RoleName>> = {
  apiserver: 'apiserver',
  controller: 'controller',
  serve: 'policy-server',
  auditor: 'auditor',
};

/** A command that goes on. */
interface Followed extends AsyncDisposable {
  /** What it has printed. */
  readonly output: string;
}

export class StartedPortcullis implements AsyncDisposable {
  /** The parent of the data folder and the home. */
  readonly folder: string;
  readonly #args: readonly string[];
  readonly #nodeFlags: readonly string[];
  #child: ChildProcess | undefined;
  #output = '';

  private constructor(args: readonly string[], nodeFlags: readonly string[] = []) {
    this.folder = mkdtempSync(join(tmpdir(), 'portcullis-start-'));
    this.#args = args;
    this.#nodeFlags = nodeFlags;
  }

  /** {@link start} with flags of Node itself. */
  static async startWithNode(nodeFlags: readonly string[]): Promise<StartedPortcullis> {
    const started = new StartedPortcullis([], nodeFlags);
    await started.begin();
    return started;
  }

  /** Starts it and waits for its greeting. */
  static async start(...args: readonly string[]): Promise<StartedPortcullis> {
    const started = new StartedPortcullis(args);
    await started.begin();
    return started;
  }

  /** Its output since the last start. */
  get output(): string {
    return this.#output;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The ids of its processes by what they are; without those that do not run. */
  processes(): Partial<Record<RoleName, number>> {
    const children = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8');
    const found = children.split(' ').flatMap((id) => {
      const role = id === '' ? undefined : roleOf(id);
      return role === undefined ? [] : [[role, Number(id)] as const];
    });
    return Object.fromEntries(found);
  }

  /** The page of metrics of its controller. */
  async controllerMetrics(): Promise<string> {
    const [, address] = /^Controller +(http:\S+\/metrics)/m.exec(this.#output) ?? [];
    if (address === undefined) {
      throw new Error(`it names no metrics of its controller:\n${this.#output}`);
    }
    return await (await fetch(address)).text();
  }

  get home(): string {
    return join(this.folder, 'home');
  }

  get dataDir(): string {
    return join(this.folder, 'data');
  }

  get kubeconfig(): string {
    return join(this.dataDir, 'kubeconfig');
  }

  /** Starts it again, after {@link end}. */
  async begin(): Promise<void> {
    this.#output = '';
    const ports = ['--port', '0', '--operations-port', '0', '--cluster-port', '0'];
    const args = [...this.#nodeFlags, COMMAND, 'start', ...ports, '--data-dir', this.dataDir, ...this.#args];
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      env: { ...ENVIRONMENT, HOME: this.home },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    }
    await eventually(
      async () => {
        if (!this.#output.includes('Ctrl-C stops.')) {
          throw new Error(`it has not greeted yet:\n${this.#output}`);
        }
      },
      { timeoutMs: START_MS },
    );
  }

  /** Ends it and keeps its data. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
      return child?.exitCode ?? null;
    }
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
    return child.exitCode;
  }

  /** Runs kubectl on its cluster. */
  kubectl(args: readonly string[], stdin = ''): Promise<CommandResult> {
    const { binaries } = clusterAvailable() as { binaries?: { kubectl: string } };
    const env = {
      KUBECONFIG: this.kubeconfig,
      KUBECACHEDIR: join(this.folder, 'kubectl'),
      KUBERC: 'off',
      HOME: this.home,
    };
    return run(binaries?.kubectl ?? 'kubectl', args, { stdin, env });
  }

  /** Runs a command of `portcullis` on its cluster. */
  portcullis(args: readonly string[], stdin = '', env: Readonly<Record<string, string>> = {}): Promise<CommandResult> {
    return portcullis(args, { stdin, env: { KUBECONFIG: this.kubeconfig, HOME: this.home, ...env } });
  }

  /** Starts a command of `portcullis` on its cluster that goes on until it is ended. */
  follow(args: readonly string[]): Followed {
    const env = { ...ENVIRONMENT, KUBECONFIG: this.kubeconfig, HOME: this.home };
    const child = spawn(process.execPath, [COMMAND, ...args], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
    const followed = {
      output: '',
      [Symbol.asyncDispose]: async () => {
        const exit = once(child, 'exit');
        child.kill();
        await exit;
      },
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (followed.output += text));
    return followed;
  }

  /** Creates an object as the owner of the cluster. Returns the answer. */
  create(apiVersion: string, resource: string, body: object): Promise<unknown> {
    return this.request('POST', `/apis/${apiVersion}/${resource}`, body);
  }

  /** Sends a request as the owner of the cluster; a patch is a merge patch. Returns the answer. */
  async request(method: 'PATCH' | 'POST', path: string, body: object): Promise<unknown> {
    const { connection } = await loadKubeconfig({ paths: [this.kubeconfig], env: {} });
    using cluster = new KubernetesCluster(connection);
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    return (await cluster.request(method, path, { body, contentType })).json();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What a process is by its command line; undefined when it has ended. */
function roleOf(id: string): RoleName | undefined {
  try {
    const words = readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0');
    return COMMANDS[words[words.indexOf(COMMAND) + 1] ?? ''];
  } catch {
    return undefined;
  }
}
