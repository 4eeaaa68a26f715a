// An installation by the command, and people who use it with commands of their own kubeconfig.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { COMMAND, ENVIRONMENT, ROOT } from '../cli/command.ts';
import { clusterAvailable } from '../cluster/binaries.ts';
import { InstallLab } from '../e2e/install-lab.ts';
import { runShell } from '../steps/shell.ts';
import type { Ended } from '../steps/step.ts';

/** A namespace of a tenant. */
export const SHOP = 'shop';

/**
 * Who uses the cluster:
 *   admin   changes what the reader sees
 *   reader  has the ClusterRole portcullis-view in the cluster, and no other right
 *   tenant  has it in the namespace {@link SHOP} only
 */
export type Person = 'admin' | 'reader' | 'tenant';

export class WalkLab implements AsyncDisposable {
  readonly lab: InstallLab;
  readonly #folder: string;

  private constructor(lab: InstallLab, folder: string) {
    this.lab = lab;
    this.#folder = folder;
  }

  /** Starts a cluster without Portcullis. */
  static async start(): Promise<WalkLab> {
    const lab = await InstallLab.start({ users: { reader: {}, tenant: {} } });
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-walk-'));
    for (const name of ['portcullis', 'npx']) {
      const shift = name === 'npx' ? 'shift\n' : '';
      writeFileSync(join(folder, name), `#!/bin/sh\n${shift}exec '${process.execPath}' '${COMMAND}' "$@"\n`);
      chmodSync(join(folder, name), 0o755);
    }
    lab.cluster.kubeconfigOf('admin');
    lab.cluster.kubeconfigOf('reader');
    lab.cluster.kubeconfigOf('tenant', SHOP);
    serveModules(lab);
    return new WalkLab(lab, folder);
  }

  /** Runs commands of a person. */
  async sh(person: Person, commands: string): Promise<Ended> {
    return await runShell(commands, { cwd: this.#folder, env: this.#environmentOf(person) });
  }

  #environmentOf(person: Person): NodeJS.ProcessEnv {
    const { binaries } = clusterAvailable() as { binaries?: Readonly<Record<'kubectl', string>> };
    return {
      ...ENVIRONMENT,
      PATH: [this.#folder, dirname(binaries?.kubectl ?? ''), process.env['PATH']].join(delimiter),
      KUBECONFIG: join(this.lab.cluster.folder, `kubeconfig-${person}.json`),
      KUBECACHEDIR: join(this.#folder, `kubectl-${person}`),
      KUBERC: 'off',
      MODULES: `http://127.0.0.1:${this.lab.web.port}`,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lab[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** What is at the address `$MODULES`: a module, a file that is none, and a source that is down. */
function serveModules({ web }: InstallLab): void {
  const bytes = readFileSync(join(ROOT, 'examples', 'required-labels', 'policy.wasm'));
  web.put('required-labels.wasm', { kind: 'serve', bytes });
  web.put('garbage.wasm', { kind: 'serve', bytes: Buffer.from('not a module') });
  web.put('down.wasm', { kind: 'status', status: 503 });
}
