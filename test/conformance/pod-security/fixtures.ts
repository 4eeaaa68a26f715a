/** First and last minor version, and a number: of a pod, or of a verdict. */
export type Range = [from: number, to: number, number: number];

export type FixtureLevel = 'baseline' | 'restricted';

/** By level, outcome and file name: which pod the file holds in which versions. */
export type Files = Record<FixtureLevel, Record<'pass' | 'fail', Record<string, Range[]>>>;

/** What upstream's evaluator says; empty lists when it admits the pod. */
export interface Verdict {
  readonly reasons: readonly string[];
  readonly details: readonly string[];
  readonly text: string;
}

/** What fixtures.json holds; README.md explains it. */
export interface Fixtures {
  readonly source: {
    readonly module: string;
    readonly version: string;
    readonly licence: string;
    readonly files: number;
  };
  /** The newest minor version that has files. */
  readonly newest: number;
  readonly files: Files;
  readonly pods: readonly unknown[];
  readonly verdicts: readonly Verdict[];
  /** By level and pod: verdicts over v1.0 to v1.`newest` and, as the version behind that, latest. */
  readonly expected: Record<FixtureLevel, readonly (readonly Range[])[]>;
}
