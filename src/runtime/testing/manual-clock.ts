import type { Clock } from '../clock.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that only a test advances. */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>();
  #now = 0;

  now(): number {
    return this.#now;
  }

  date(): number {
    return Date.UTC(2030, 0, 1) + this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + Math.max(ms, 0), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Number of pending timers. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Advances the clock; due timers fire in order, at their time. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let next = this.#nextUntil(end); next !== undefined; next = this.#nextUntil(end)) {
      this.#now = Math.max(this.#now, next.at);
      this.#timers.delete(next);
      next.callback();
    }
    this.#now = end;
  }

  /** Advances the clock in steps, and runs pending promises between them. */
  async pass(ms: number, stepMs = 100): Promise<void> {
    const end = this.#now + ms;
    await settle();
    while (this.#now < end) {
      this.advance(Math.min(stepMs, end - this.#now));
      await settle();
    }
  }

  #nextUntil(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) {
        first = timer;
      }
    }
    return first;
  }
}

/** Turns of the event loop in {@link settle}: more than a test has reconciliations, which start one in a turn. */
const TURNS = 20;

/** Runs all pending promises, and the reconciliations that are due. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
