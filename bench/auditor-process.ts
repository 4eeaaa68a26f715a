// `portcullis auditor` as a package has it, and its figures.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../bin/find-node.mjs';
import { VARIABLES } from '../tools/image/image-config.ts';
import { cpuMs, peakMiB } from './processes.ts';

const PROGRAM = fileURLToPath(new URL('../dist/cli/program/main.js', import.meta.url));
const POLL_MS = 50;
const PATIENCE_MS = 900_000;

/** From its metrics. */
export interface AuditorFigures {
  readonly evaluations: number;
  readonly findings: number;
  /** Entries of coverage that are not complete. */
  readonly open: number;
}

export class AuditorProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #operations: string;
  readonly #began: number;

  private constructor(child: ChildProcess, operations: string, began: number) {
    this.#child = child;
    this.#operations = operations;
    this.#began = began;
  }

  /** Resolves when its port is open. @param folder for modules that it loaded */
  static async start(kubeconfig: string, modules: string, folder: string): Promise<AuditorProcess> {
    const flags = {
      '--kubeconfig': kubeconfig,
      '--modules-dir': modules,
      '--policies-download-dir': folder,
      '--operations-port': '0',
      '--log-fmt': 'json',
    };
    const args = [...NODE_FLAGS, PROGRAM, 'auditor', '--no-leader-elect', ...Object.entries(flags).flat()];
    const began = performance.now();
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...VARIABLES },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { msg, operations } = JSON.parse(line) as { readonly msg: string; readonly operations?: string };
      if (msg === 'auditor ready' && operations !== undefined) {
        resolve(operations);
      }
    });
    child.on('exit', (code) => reject(new Error(`the auditor ended with ${code}`)));
    return new AuditorProcess(child, await promise, began);
  }

  /** Processor time so far. Milliseconds. */
  get cpuMs(): number {
    return cpuMs(this.#child.pid ?? Number.NaN);
  }

  get peakMiB(): number {
    return peakMiB(this.#child.pid ?? Number.NaN);
  }

  /** Milliseconds from its start until all is judged. */
  async judged(): Promise<number> {
    await this.until(({ open, evaluations }) => open === 0 && evaluations > 0);
    return performance.now() - this.#began;
  }

  async until(condition: (figures: AuditorFigures) => boolean): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    for (let figures = await this.figures(); !condition(figures); figures = await this.figures()) {
      if (performance.now() > deadline) {
        throw new Error(`the auditor has ${JSON.stringify(figures)}`);
      }
      await sleep(POLL_MS);
    }
  }

  async figures(): Promise<AuditorFigures> {
    const text = await (await fetch(new URL('/metrics', this.#operations))).text();
    return {
      evaluations: sumOfSamples(text, /^portcullis_audit_evaluations_total\b.* (\d+)$/gm),
      findings: sumOfSamples(text, /^portcullis_audit_findings\b.* (\d+)$/gm),
      open: sumOfSamples(text, /^portcullis_audit_coverage\{.*state="(?!Scanned|NotServed|NotAuditable).* (\d+)$/gm),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await ended;
    }
  }
}

/** The sum of the samples of a page of metrics that match. */
export function sumOfSamples(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0);
}
