// A fresh clone of the repository, and a user in it. The clone has what is committed, so a file that was not added is missing.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { ROOT, run } from '../cli/command.ts';
import { clusterAvailable } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { runShell } from '../steps/shell.ts';
import type { Ended } from '../steps/step.ts';

/** Time for an installation and a start, which take 20 s on two idle cores. */
const START_MS = 180_000;
/** Variables of the npm script that runs the tests, which would say to programs that they run in that script. */
const FOREIGN = /^(?:npm_(?:lifecycle|package|config_\w*prefix)|INIT_CWD|NODE_(?!EXTRA_CA)|PORTCULLIS_|KUBECONFIG)/;

export class FreshClone implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'portcullis-clone-'));
  #npm: ChildProcess | undefined;
  #output = '';

  /** Clones the repository, and copies the files of the user into a folder of it. */
  async create(files: string): Promise<void> {
    const { code, stderr } = await run('git', ['clone', '--quiet', `file://${ROOT}`, this.root]);
    if (code !== 0) {
      throw new Error(stderr);
    }
    cpSync(files, this.policies, { recursive: true });
    // npm link expects it in the global folder.
    mkdirSync(join(this.#folder, 'lib'));
  }

  get root(): string {
    return join(this.#folder, 'portcullis');
  }

  /** The folder with the files of the user. */
  get policies(): string {
    return join(this.root, 'my-policies');
  }

  /** What `npm start` has printed. */
  get output(): string {
    return this.#output;
  }

  /** The environment of a user who has linked the commands, and whose kubectl uses the cluster of `npm start`. */
  get #environment(): Record<string, string> {
    const { binaries } = clusterAvailable() as { binaries?: Readonly<Record<'kubectl' | 'helm', string>> };
    const paths = (process.env['PATH'] ?? '').split(delimiter).filter((path) => !path.startsWith(ROOT));
    const programs = [binaries?.kubectl, binaries?.helm].flatMap((file) => (file === undefined ? [] : [dirname(file)]));
    return {
      ...Object.fromEntries(
        Object.entries(process.env).flatMap(([name, value]) =>
          value === undefined || FOREIGN.test(name) ? [] : [[name, value]],
        ),
      ),
      PATH: [join(this.#folder, 'bin'), ...paths, ...programs].join(delimiter),
      NO_COLOR: '1',
      XDG_CACHE_HOME: join(this.#folder, 'cache'),
      NODE_COMPILE_CACHE: join(this.#folder, 'node-cache'),
      KUBECONFIG: join(this.root, '.portcullis', 'kubeconfig'),
      KUBECACHEDIR: join(this.#folder, 'kubectl'),
      KUBERC: 'off',
    };
  }

  /** Runs `npm start`, and waits for its greeting. */
  async start(): Promise<void> {
    const npm = spawn('npm', ['start'], {
      cwd: this.root,
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#npm = npm;
    for (const stream of [npm.stdout, npm.stderr]) {
      stream.setEncoding('utf8').on('data', (part: string) => (this.#output += part));
    }
    await eventually(
      async () => {
        if (!this.#output.includes('Ctrl-C stops.')) {
          throw new Error(`npm start has not greeted yet:\n${this.#output}`);
        }
      },
      { timeoutMs: START_MS },
    );
  }

  /** Links the commands, as `npm link` does for a user who owns the global folder. */
  async link(): Promise<Ended> {
    return await this.sh(`cd .. && npm_config_prefix='${this.#folder}' npm link --offline --no-audit --no-fund`);
  }

  /** Runs commands in the folder of the user. Standard error becomes part of the output. */
  async sh(commands: string): Promise<Ended> {
    return await runShell(commands, { cwd: this.policies, env: this.#environment });
  }

  /** Sends SIGTERM to npm alone, as a supervisor does. */
  async end(): Promise<void> {
    const npm = this.#npm;
    if (npm !== undefined && npm.exitCode === null && npm.signalCode === null) {
      const exit = once(npm, 'exit');
      npm.kill('SIGTERM');
      await exit;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    // The product ends a moment after npm.
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
  }
}
