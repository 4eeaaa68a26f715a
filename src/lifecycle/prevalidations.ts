// Trials of revisions under way: each takes as long as its source does, and holds nothing but its own policy.
import { Waiting } from '../runtime/index.ts';
import type { PrevalidationRequest, PrevalidationResult } from '../server/index.ts';
import type { ReplicaDirectory } from './replicas/replica-directory.ts';

/** Trials at once: below what one replica takes (128), so that none is sent away. */
export const MAX_TRIALS = 96;
/** When a trial could not be made for a reason of its own, it is made again after so long. Milliseconds. */
const FAILED_TRIAL_MS = 1_000;

/** A trial of one revision of one policy. */
interface Trial {
  readonly revision: string;
  readonly abort: AbortController;
  result: PrevalidationResult | undefined;
}

export interface PrevalidationsOptions {
  readonly replicas: Pick<ReplicaDirectory, 'prevalidate'>;
  /** Told when the result of a policy's trial is there, or when it is time to try again. */
  readonly done: (policy: string) => void;
  readonly failed: (policy: string, error: unknown) => void;
}

export class Prevalidations {
  readonly #options: PrevalidationsOptions;
  readonly #trials = new Map<string, Trial>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: PrevalidationsOptions) {
    this.#options = options;
  }

  /** The result of a trial, once: undefined while it runs. Begins one when none of this revision runs. */
  result(
    policy: string,
    revision: string,
    policyServer: string,
    request: PrevalidationRequest,
  ): PrevalidationResult | undefined {
    const trial = this.#trials.get(policy);
    if (trial?.revision === revision) {
      if (trial.result !== undefined) {
        this.#trials.delete(policy);
      }
      return trial.result;
    }
    trial?.abort.abort();
    const started: Trial = { revision, abort: new AbortController(), result: undefined };
    this.#trials.set(policy, started);
    void this.#run(policy, started, policyServer, request);
    return undefined;
  }

  /** Ends the trial of a policy, if one runs: nobody wants to know any more. */
  cancel(policy: string): void {
    this.#trials.get(policy)?.abort.abort();
    this.#trials.delete(policy);
  }

  cancelAll(): void {
    for (const policy of this.#trials.keys()) {
      this.cancel(policy);
    }
  }

  async #run(policy: string, trial: Trial, policyServer: string, request: PrevalidationRequest): Promise<void> {
    const { signal } = trial.abort;
    await this.#slot();
    try {
      signal.throwIfAborted();
      trial.result = await this.#options.replicas.prevalidate(policyServer, request, signal);
      this.#tell(policy, trial);
    } catch (error) {
      if (!signal.aborted) {
        const afterMs = error instanceof Waiting ? error.afterMs : FAILED_TRIAL_MS;
        if (!(error instanceof Waiting)) {
          this.#options.failed(policy, error);
        }
        setTimeout(() => {
          if (this.#trials.get(policy) === trial) {
            this.#trials.delete(policy);
            this.#options.done(policy);
          }
        }, afterMs).unref();
      }
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  #tell(policy: string, trial: Trial): void {
    if (this.#trials.get(policy) === trial) {
      this.#options.done(policy);
    }
  }

  async #slot(): Promise<void> {
    if (this.#running >= MAX_TRIALS) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#running += 1;
  }
}
