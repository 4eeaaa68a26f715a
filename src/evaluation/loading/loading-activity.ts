import type { LogEntry } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';
import type { WorkerActivity } from '../evaluation-protocol.ts';
import { QuarantineError } from './load-failure.ts';
import { type Stage, STAGES } from './load-request.ts';
import type { LoaderStart } from './loader-lane.ts';
import { LoadingRecord, suspectKey } from './loading-record.ts';
import type { Quarantined } from './quarantine.ts';

/**
 * What a loader thread does at the moment: in shared memory, for the deadline, and in a file, which tells the next process what
 * ended this one.
 */
export class LoadingActivity {
  readonly #activity: WorkerActivity;
  readonly #record: LoadingRecord | undefined;
  readonly #quarantined: ReadonlyMap<string, Quarantined>;
  readonly #log: (entry: LogEntry) => void;

  constructor(
    { recordPath, quarantined = [] }: Pick<LoaderStart, 'recordPath' | 'quarantined'>,
    activity: WorkerActivity,
    log: (entry: LogEntry) => void,
  ) {
    this.#activity = activity;
    this.#record = recordPath === undefined ? undefined : new LoadingRecord(recordPath);
    this.#quarantined = new Map(quarantined.map((one) => [one.key, one]));
    this.#log = log;
  }

  /**
   * Records what may end the process.
   * @param settingsJson of a check
   * @throws QuarantineError
   */
  begin(policy: string, digest: string, settingsJson?: string): void {
    if (this.#record === undefined) {
      return;
    }
    const key = suspectKey(digest, settingsJson);
    const suspect = this.#quarantined.get(key);
    if (suspect !== undefined && suspect.until > Date.now()) {
      throw new QuarantineError(suspect);
    }
    try {
      this.#record.begin({ key, policy });
    } catch (error) {
      const fields = { policy, error: errorText(error) };
      this.#log({ level: 'error', message: 'cannot record what is being loaded', fields });
    }
  }

  /** Nothing that may end the process is being done. */
  end(): void {
    this.#record?.end();
  }

  /** A stage of a load begins; the main thread ends this one when it takes longer. */
  enter(seq: number, stage: Stage, timeoutMs: number): void {
    this.#activity.enter(seq, timeoutMs, STAGES.indexOf(stage), 0);
  }

  leave(): void {
    this.#activity.leave();
  }
}
