/** Weight of the newest evaluation in a usual time: follows a change within some ten evaluations. */
const USUAL_WEIGHT = 0.2;

/** Moving averages of evaluation times, by policy and by bucket. Milliseconds. */
export class UsualTimes {
  readonly #ms = new Map<string, number>();

  get(key: string): number | undefined {
    return this.#ms.get(key);
  }

  note(key: string, ms: number): void {
    const before = this.#ms.get(key) ?? ms;
    this.#ms.set(key, before + (ms - before) * USUAL_WEIGHT);
  }

  delete(key: string): void {
    this.#ms.delete(key);
  }
}
