import { aborted, type Controller, type Runnable } from '../../runtime/index.ts';

/** Controllers that start and stop together, with what wakes them besides their watches. */
export class ControllerSet implements Runnable {
  readonly name: string;
  /** Resolves when all run. */
  readonly ready: Promise<void>;
  readonly #controllers: readonly Controller[];
  readonly #follow: () => readonly (() => void)[];
  readonly #isReady = Promise.withResolvers<void>();

  /** @param follow subscribes to what wakes the controllers; returns functions that unsubscribe */
  constructor(name: string, controllers: readonly Controller[], follow: () => readonly (() => void)[]) {
    this.name = name;
    this.ready = this.#isReady.promise;
    this.#controllers = controllers;
    this.#follow = follow;
  }

  /** Whether all queues are empty. Changes that the caches do not show yet may add work. */
  get isIdle(): boolean {
    return this.#controllers.every(({ isIdle }) => isIdle);
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const ends = this.#follow();
    const running = this.#controllers.map((controller) => controller.start(signal));
    try {
      const allReady = Promise.all(this.#controllers.map(({ ready }) => ready));
      await Promise.race([aborted(signal), allReady, ...running]);
      this.#isReady.resolve();
      await Promise.all(running);
    } finally {
      for (const end of ends) {
        end();
      }
    }
  }
}
