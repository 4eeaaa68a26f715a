// Sends observations from a worker to the main thread. Few of them differ, and cloning one costs as much as the bytes of a
// small review, so each is sent once, and later its number.
import type { Observation } from '../engine/index.ts';

/** Maximum number of numbered observations; beyond it, both ends clear their tables. */
export const MAX_NUMBERED_OBSERVATIONS = 10_000;

/** An observation, or the number of one that was sent before: they count from 0 in the order of their first sending. */
export type SentObservation = Observation | number | null;

/** The worker's end. */
export class ObservationSender {
  readonly #numbers = new Map<string, number>();

  /** How many have a number. */
  get size(): number {
    return this.#numbers.size;
  }

  /** Numbers from 0 again. The other end has to clear its table between the same messages. */
  clear(): void {
    this.#numbers.clear();
  }

  /** What to send for an observation. */
  send(observation: Observation | null): SentObservation {
    if (observation === null) {
      return null;
    }
    const key = JSON.stringify(observation);
    const number = this.#numbers.get(key);
    if (number !== undefined) {
      return number;
    }
    if (this.#numbers.size >= MAX_NUMBERED_OBSERVATIONS) {
      this.#numbers.clear();
    }
    this.#numbers.set(key, this.#numbers.size);
    return observation;
  }
}

/** The main thread's end of one worker. Gives the same object for the same observation. */
export class ObservationReceiver {
  readonly #received: Observation[] = [];

  /** How many have a number. */
  get size(): number {
    return this.#received.length;
  }

  /** See {@link ObservationSender.clear}. */
  clear(): void {
    this.#received.length = 0;
  }

  receive(sent: SentObservation): Observation | null {
    if (typeof sent === 'number') {
      return this.#received[sent] ?? null;
    }
    if (sent !== null) {
      if (this.#received.length >= MAX_NUMBERED_OBSERVATIONS) {
        this.#received.length = 0;
      }
      this.#received.push(sent);
    }
    return sent;
  }
}
