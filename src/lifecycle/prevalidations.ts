// Trials of revisions under way: each takes as long as its source does, and holds nothing but its own policy.
import { Waiting } from '../runtime/index.ts';
import type { PrevalidationRequest, PrevalidationResult } from '../control/index.ts';
import type { ReplicaDirectory } from './replicas/replica-directory.ts';

/** Trials at once: below what one replica takes (128), so that none is sent away. */
export const MAX_TRIALS = 96;
/** Of them, those of one namespace: its sources may be slow, and hold nobody else's policies. */
export const MAX_TRIALS_OF_NAMESPACE = MAX_TRIALS / 4;
/** When a trial could not be made for a reason of its own, it is made again after so long. Milliseconds. */
const FAILED_TRIAL_MS = 1_000;

/** A trial of one revision of one policy. */
interface Trial {
  readonly revision: string;
  readonly abort: AbortController;
  result: PrevalidationResult | undefined;
}

/** A trial that waits for its turn. */
interface Turn {
  /** Undefined: of the whole cluster. */
  readonly namespace: string | undefined;
  readonly begin: () => void;
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
  readonly #waiting: Turn[] = [];
  /** How many run, by namespace. */
  readonly #running = new Map<string | undefined, number>();

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
    const { namespace } = request.metadata;
    await this.#turn(namespace);
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
      this.#count(namespace, -1);
      this.#serve();
    }
  }

  #tell(policy: string, trial: Trial): void {
    if (this.#trials.get(policy) === trial) {
      this.#options.done(policy);
    }
  }

  #turn(namespace: string | undefined): Promise<void> {
    return new Promise((begin) => {
      this.#waiting.push({ namespace, begin });
      this.#serve();
    });
  }

  /** Lets those begin whose turn it is. */
  #serve(): void {
    let total = this.#running.values().reduce((sum, count) => sum + count, 0);
    while (total < MAX_TRIALS) {
      const index = this.#waiting.findIndex(
        ({ namespace }) => namespace === undefined || (this.#running.get(namespace) ?? 0) < MAX_TRIALS_OF_NAMESPACE,
      );
      const [turn] = index === -1 ? [] : this.#waiting.splice(index, 1);
      if (turn === undefined) {
        return;
      }
      this.#count(turn.namespace, 1);
      total += 1;
      turn.begin();
    }
  }

  #count(namespace: string | undefined, by: number): void {
    const count = (this.#running.get(namespace) ?? 0) + by;
    if (count === 0) {
      this.#running.delete(namespace);
    } else {
      this.#running.set(namespace, count);
    }
  }
}
