import { setTimeout as sleep } from 'node:timers/promises';
import { Backoff } from '../../cluster/index.ts';
import type { PolicyVersion } from './policy-version.ts';

/** Objects that are judged again without a change of them. */
export interface Scan {
  readonly policies: ReadonlyMap<string, PolicyVersion>;
  /** Absent: all. */
  readonly namespace?: string;
  /** `first`: by versions that judged none yet. `again`: where keys changed. `forced`: also where they did not. */
  readonly why: 'first' | 'again' | 'forced';
}

interface KindScansOptions {
  readonly run: (scan: Scan) => Promise<void>;
  /** Whether a scan by a policy is still wanted. */
  readonly isOpen: (scan: Scan, version: PolicyVersion) => boolean;
  readonly onFailure: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/** The scans of a kind, one after the other, each until it succeeds. */
export class KindScans {
  readonly #options: KindScansOptions;
  readonly #waiting: Scan[] = [];
  #isRunning = false;

  constructor(options: KindScansOptions) {
    this.#options = options;
  }

  add(scan: Scan): void {
    this.#waiting.push(scan);
    void this.#run();
  }

  clear(): void {
    this.#waiting.length = 0;
  }

  async #run(): Promise<void> {
    if (this.#isRunning) {
      return;
    }
    this.#isRunning = true;
    const { run, onFailure, signal } = this.#options;
    const backoff = new Backoff();
    for (let scan = this.#next(); scan !== undefined && !signal.aborted; scan = this.#next()) {
      try {
        await run(scan);
        backoff.reset();
      } catch (error) {
        this.#waiting.push(scan);
        onFailure(error);
        await sleep(backoff.failed(performance.now()), undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
    this.#isRunning = false;
  }

  /** Scans that were asked for meanwhile, as one where they are alike. */
  #next(): Scan | undefined {
    const [first] = this.#waiting;
    if (first === undefined) {
      return undefined;
    }
    const isAlike = ({ namespace, why }: Scan): boolean => namespace === first.namespace && why === first.why;
    const alike = this.#waiting.filter(isAlike);
    this.#waiting.splice(0, this.#waiting.length, ...this.#waiting.filter((scan) => !isAlike(scan)));
    // Of policies that changed since, the newer scan is of the newer version.
    const open = alike.flatMap((scan) =>
      [...scan.policies].filter(([, version]) => this.#options.isOpen(first, version)),
    );
    return { ...first, policies: new Map(open) };
  }
}
