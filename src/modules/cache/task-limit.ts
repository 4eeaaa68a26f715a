/** Runs at most a number of tasks at the same time, in their order. */
export class TaskLimit {
  readonly #tasks: number;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(tasks: number) {
    this.#tasks = tasks;
    this.#free = tasks;
  }

  /** Whether no task runs. */
  get isUnused(): boolean {
    return this.#free === this.#tasks;
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free === 0) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    } else {
      this.#free -= 1;
    }
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) {
        this.#free += 1;
      } else {
        next();
      }
    }
  }
}
