/** The label of what has no label of its own, as a metric has as many as it may. */
const OTHER = 'other';

/** Limits the values of a label: the most frequent ones keep theirs. A value that nobody else has costs its sender nothing. */
export class LabelLimit {
  readonly #counts = new Map<string, number>();
  readonly #max: number;
  #shown: ReadonlySet<string> | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  /** Counts a value, before any is asked for. */
  count(value: string): void {
    this.#counts.set(value, (this.#counts.get(value) ?? 0) + 1);
  }

  label(value: string): string {
    this.#shown ??= new Set(
      [...this.#counts]
        .sort(([, one], [, other]) => other - one)
        .slice(0, this.#max)
        .map(([name]) => name),
    );
    return this.#shown.has(value) ? value : OTHER;
  }
}
