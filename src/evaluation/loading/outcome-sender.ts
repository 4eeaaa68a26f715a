import type { FromLoader } from './loader-lane.ts';
import type { LoadOutcome } from './load-request.ts';

/** Outcomes within this time are one message, so that a file of thousands of policies takes few. Milliseconds. */
const FLUSH_DELAY_MS = 5;

/** Sends outcomes of loads to the main thread, many in one message. */
export class OutcomeSender {
  readonly #say: (message: FromLoader) => void;
  #outcomes: [seq: number, outcome: LoadOutcome][] = [];
  #unfinished: number[] = [];
  #flushing: NodeJS.Timeout | undefined;

  constructor(say: (message: FromLoader) => void) {
    this.#say = say;
  }

  /** Sends an outcome soon. */
  send(seq: number, outcome: LoadOutcome): void {
    this.#outcomes.push([seq, outcome]);
    this.#flushing ??= setTimeout(() => this.flush(), FLUSH_DELAY_MS);
  }

  /** Sends soon that a load needs more time than this thread gives. */
  sendUnfinished(seq: number): void {
    this.#unfinished.push(seq);
    this.#flushing ??= setTimeout(() => this.flush(), FLUSH_DELAY_MS);
  }

  /** Sends now what waits. */
  flush(): void {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    if (this.#outcomes.length > 0) {
      this.#say({ type: 'loaded', outcomes: this.#outcomes });
      this.#outcomes = [];
    }
    if (this.#unfinished.length > 0) {
      this.#say({ type: 'unfinished', seqs: this.#unfinished });
      this.#unfinished = [];
    }
  }
}
