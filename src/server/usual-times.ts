/** Weight of the newest evaluation in a usual time: follows a change within some ten evaluations. */
const USUAL_WEIGHT = 0.2;

/** How long the policies, and all of a bucket, usually take. Milliseconds. */
export class UsualTimes {
  readonly #ms = new Map<string, number>();

  get(key: string): number | undefined {
    return this.#ms.get(key);
  }

  note(key: string, ms: number): void {
    const usual = this.#ms.get(key) ?? ms;
    this.#ms.set(key, usual + (ms - usual) * USUAL_WEIGHT);
  }

  delete(key: string): void {
    this.#ms.delete(key);
  }
}
