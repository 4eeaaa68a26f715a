/** Weight of the newest evaluation in a usual time: follows a change within some ten evaluations. */
const USUAL_WEIGHT = 0.2;

/** What something usually takes after it took `ms`; `usual`: what it took before, if that is known. Milliseconds. */
export function usualAfter(usual: number | undefined, ms: number): number {
  const before = usual ?? ms;
  return before + (ms - before) * USUAL_WEIGHT;
}

/** How long the policies, and all of a bucket, usually take. Milliseconds. */
export class UsualTimes {
  readonly #ms = new Map<string, number>();

  get(key: string): number | undefined {
    return this.#ms.get(key);
  }

  note(key: string, ms: number): void {
    this.#ms.set(key, usualAfter(this.#ms.get(key), ms));
  }

  delete(key: string): void {
    this.#ms.delete(key);
  }
}
