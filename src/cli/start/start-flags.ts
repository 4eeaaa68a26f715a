import type { FailingPoliciesFlags } from '../controller/failing-policies-flags.ts';
import type { SourceFlags } from '../module/source-flags.ts';
import type { VerificationFlags } from '../module/verification-flags.ts';

/** The flags of `start`. */
export interface StartFlags extends FailingPoliciesFlags, SourceFlags, VerificationFlags {
  readonly dataDir: string;
  readonly policies?: string;
  readonly examples?: true;
  readonly port: number;
  readonly operationsPort: number;
  readonly clusterPort: number;
}
