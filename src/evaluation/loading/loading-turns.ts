import { OwnerQueue } from '../../threads/index.ts';

/** How long a slice of work takes before outcomes are sent and messages are received. Milliseconds. */
const SLICE_MS = 50;

/** What is called between two slices of work. */
export interface LoadingTurnsListener {
  /** After each slice. */
  paused(): void;
  /** All work is done; before {@link paused}. */
  done(): void;
}

/** Compilations and checks that wait. Namespaces take turns, so that those that take long delay others of their own namespace. */
export class LoadingTurns {
  readonly #work = new OwnerQueue<() => void>();
  readonly #last = new OwnerQueue<() => void>();
  readonly #listener: LoadingTurnsListener;
  #isWorking = false;

  constructor(listener: LoadingTurnsListener) {
    this.#listener = listener;
  }

  push(owner: string, run: () => void): void {
    this.#work.push(owner, run);
    if (!this.#isWorking) {
      this.#isWorking = true;
      setImmediate(() => this.#workSome());
    }
  }

  /** Called by work: adds work that comes after all other. */
  pushLast(owner: string, run: () => void): void {
    this.#last.push(owner, run);
  }

  /** Works for {@link SLICE_MS}. */
  #workSome(): void {
    const end = performance.now() + SLICE_MS;
    do {
      const next = this.#work.shift() ?? this.#last.shift();
      if (next === undefined) {
        this.#listener.done();
        break;
      }
      next();
    } while (performance.now() < end);
    this.#listener.paused();
    this.#isWorking = this.#work.length + this.#last.length > 0;
    if (this.#isWorking) {
      setImmediate(() => this.#workSome());
    }
  }
}
