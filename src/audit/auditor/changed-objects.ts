import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../../resources/index.ts';

/** Changes of objects that come within this time are judged together. Milliseconds. */
const BURST_MS = 50;
/** Changed objects that wait. Then the watch waits, too. */
const MAX_CHANGED = 500;

/** Changed objects of a kind that wait to be judged, the newest version of each. */
export class ChangedObjects {
  readonly #judge: (take: () => readonly KubernetesObject[]) => Promise<void>;
  readonly #perTurn: number;
  /** By id. */
  readonly #waiting = new Map<string, KubernetesObject>();
  #room: PromiseWithResolvers<void> | undefined;
  #isRunning = false;
  #isStopped = false;

  /** @param judge judges the objects that it takes when its turn comes, at most `perTurn` */
  constructor(judge: (take: () => readonly KubernetesObject[]) => Promise<void>, perTurn: number) {
    this.#judge = judge;
    this.#perTurn = perTurn;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves when there is room for another one. */
  async add(id: string, object: KubernetesObject): Promise<void> {
    this.#waiting.set(id, object);
    void this.#run();
    if (this.#waiting.size >= MAX_CHANGED) {
      this.#room ??= Promise.withResolvers();
      await this.#room.promise;
    }
  }

  delete(id: string): void {
    this.#waiting.delete(id);
  }

  clear(): void {
    this.#waiting.clear();
  }

  stop(): void {
    this.#isStopped = true;
    this.#room?.resolve();
  }

  async #run(): Promise<void> {
    if (this.#isRunning) {
      return;
    }
    this.#isRunning = true;
    try {
      await sleep(BURST_MS, undefined, { ref: false });
      while (this.#waiting.size > 0 && !this.#isStopped) {
        await this.#judge(() => this.#take());
        if (this.#waiting.size < MAX_CHANGED) {
          this.#room?.resolve();
          this.#room = undefined;
        }
      }
    } finally {
      this.#isRunning = false;
    }
  }

  #take(): readonly KubernetesObject[] {
    const some = [...this.#waiting.entries().take(this.#perTurn)];
    some.forEach(([id]) => this.#waiting.delete(id));
    return some.map(([, object]) => object);
  }
}
