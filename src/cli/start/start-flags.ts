import type { FailingPoliciesFlags } from '../controller/failing-policies-flags.ts';
import type { GovernanceFlags } from '../controller/governance-flags.ts';
import type { NetworkPolicyFlags } from '../controller/network-policy-flags.ts';
import type { SourceFlags } from '../module/source-flags.ts';
import type { VerificationFlags } from '../module/verification-flags.ts';

/** The flags of `start`. */
export interface StartFlags
  extends FailingPoliciesFlags, GovernanceFlags, NetworkPolicyFlags, SourceFlags, VerificationFlags {
  readonly networkPolicyStatusSubresource: boolean;
  readonly auditor: boolean;
  readonly governanceRole: readonly string[];
  readonly dataDir: string;
  readonly policies?: string;
  readonly examples?: true;
  readonly port: number;
  readonly operationsPort: number;
  readonly clusterPort: number;
}
