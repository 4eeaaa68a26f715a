/** Promises for the end of the next pass, by key. */
export class PassSignal {
  readonly #next = new Map<string, PromiseWithResolvers<void>>();

  next(key: string): Promise<void> {
    const waiting = this.#next.get(key) ?? Promise.withResolvers<void>();
    this.#next.set(key, waiting);
    return waiting.promise;
  }

  ended(key: string): void {
    this.#next.get(key)?.resolve();
    this.#next.delete(key);
  }

  /** Resolves all promises when passes stop. */
  end(): void {
    for (const key of this.#next.keys()) {
      this.ended(key);
    }
  }
}
