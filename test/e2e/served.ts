// Runs `portcullis serve` as a separate process, as users do.
import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { LocalCertificates } from '../../src/control/certificates/index.ts';

const program = fileURLToPath(new URL('../../bin/portcullis.mjs', import.meta.url));

/** Options of {@link serve}. */
export interface ServeOptions {
  /** The working folder, also for its data. */
  readonly folder: string;
  readonly policiesFile: string;
  readonly certificates: LocalCertificates;
  /** More arguments. Default: none. */
  readonly args?: readonly string[];
}

/** A running `portcullis serve`. */
export class Served implements AsyncDisposable {
  /** Base URL of the admission port. */
  readonly admission: string;
  /** Base URL of the operations port. */
  readonly operations: string;
  readonly #child: ChildProcessWithoutNullStreams;

  constructor(child: ChildProcessWithoutNullStreams, addresses: { admission: string; operations: string }) {
    this.#child = child;
    this.admission = addresses.admission;
    this.operations = addresses.operations;
  }

  /** Ends the process with SIGTERM. Returns its exit code. */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exit = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await exit;
    }
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Starts `portcullis serve` on free ports, and waits until it is ready. */
export async function serve({ folder, policiesFile, certificates, args = [] }: ServeOptions): Promise<Served> {
  const flags = {
    '--addr': '127.0.0.1',
    '--port': '0',
    '--readiness-probe-port': '0',
    '--policies': policiesFile,
    '--policies-download-dir': join(folder, 'data'),
    '--cert-file': certificates.certFile,
    '--key-file': certificates.keyFile,
    '--log-fmt': 'json',
  };
  const child = spawn(process.execPath, [program, 'serve', ...Object.entries(flags).flat(), ...args], {
    cwd: folder,
    stdio: 'pipe',
  });
  child.stdin.end();
  const output: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => output.push(text));
  const lines = createInterface({ input: child.stdout });
  const { promise, resolve, reject } = Promise.withResolvers<Served>();
  lines.on('line', (line) => {
    output.push(line);
    const entry = JSON.parse(line) as { msg: string; admission: string; operations: string };
    if (entry.msg === 'policy server ready') {
      resolve(new Served(child, entry));
    }
  });
  child.on('exit', (code) => reject(new Error(`portcullis serve ended with ${code}:\n${output.join('\n')}`)));
  const served = await promise;
  assert.match(served.admission, /^https:/);
  return served;
}
