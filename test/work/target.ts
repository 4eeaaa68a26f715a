import type { Family } from './hostile-values.ts';

/** A function of some language, with what it charges. */
export interface Target {
  readonly name: string;
  /** Arguments of a family. */
  readonly arguments: (family: Family) => readonly unknown[];
  /**
   * Calls it. Returns how long the work that it charged for may take, up to what ends an evaluation in any case. Nanoseconds.
   * What it throws because its arguments are invalid, or the limit is reached, is no error here.
   */
  readonly charge: (args: readonly unknown[]) => Charge;
}

export interface Charge {
  readonly ns: number;
  /** Characters that it charged for making; undefined where memory is bounded otherwise. */
  readonly chars?: number;
  /** By how many characters results were longer than the arguments. */
  readonly returned?: number;
}
