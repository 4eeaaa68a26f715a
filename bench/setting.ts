// A folder with certificates, a policies file and a review, and a policy server in its own process that uses it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureLocalCertificates, type LocalCertificates } from '../src/control/certificates/index.ts';
import { NODE_FLAGS } from '../bin/find-node.mjs';
import { VARIABLES } from '../tools/image/image-config.ts';
import { LineProcess } from './processes.ts';
import { writeReview } from './review.ts';

/** The folder of the example policies. */
export const EXAMPLES = fileURLToPath(new URL('../examples', import.meta.url));
/** The folder of test guests. */
export const GUESTS = fileURLToPath(new URL('../test/fixtures/guests', import.meta.url));

interface Started {
  readonly admission: string;
  readonly operations: string;
  /** Time from the start of the process until every policy served. Milliseconds. */
  readonly upMs: number;
  /** Resident memory then. Bytes. */
  readonly rss: number;
}

/** `close` ends the processes and removes the folder. */
export class Setting {
  readonly folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
  readonly policiesFile = join(this.folder, 'policies.yml');
  readonly reviewFile = writeReview(join(this.folder, 'review.json'));
  #certificates: LocalCertificates | undefined;
  readonly #processes: LineProcess[] = [];

  async certificates(): Promise<LocalCertificates> {
    this.#certificates ??= await ensureLocalCertificates(join(this.folder, 'pki'));
    return this.#certificates;
  }

  /** Starts a server with two workers and the variables of the image. @param policies the text of the policies file */
  async serve(policies: string): Promise<Started & { process: LineProcess }> {
    writeFileSync(this.policiesFile, policies);
    const options = {
      policiesFile: this.policiesFile,
      dataDir: join(this.folder, 'data'),
      port: 0,
      operationsPort: 0,
      workers: 2,
      // On a busy machine, too, the start ends when all policies serve.
      readyWaitMs: 120_000,
      tls: await this.certificates(),
    };
    const process = new LineProcess(
      './serve.mjs',
      [JSON.stringify(options)],
      [...NODE_FLAGS, '--expose-gc'],
      VARIABLES,
    );
    this.#processes.push(process);
    return { ...(JSON.parse(await process.line()) as Started), process };
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.end()));
    rmSync(this.folder, { recursive: true });
  }
}
