/** The time that policies have for validating settings of each namespace. Kept across evaluations. */
export interface ValidationBudget {
  /**
   * Time until settings of a namespace may be validated; 0: now. Milliseconds.
   * @param limitMs for one validation
   */
  waitMs(policy: string, namespace: string, limitMs: number): number;
  /** Notes that a validation starts. */
  started(policy: string, namespace: string): void;
  /** Notes that a validation has ended, and how long it counts. */
  ended(policy: string, namespace: string, ms: number): void;
}
