import type { FailingPoliciesFlags } from '../controller/failing-policies-flags.ts';

/** The flags of `start`. */
export interface StartFlags extends FailingPoliciesFlags {
  readonly dataDir: string;
  readonly policies?: string;
  readonly examples?: true;
  readonly port: number;
  readonly operationsPort: number;
  readonly clusterPort: number;
}
