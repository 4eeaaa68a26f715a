// The words of a NetworkPolicyStatus.
import type { NetworkPolicyStatus } from '../resources/index.ts';

export type StatusFields = NonNullable<NetworkPolicyStatus['status']>;

/** The provider does what the policy says. */
export const ACCEPTED = 'Accepted';
/** Some of the policy has no effect, or is not enforced on some nodes. Absent otherwise. */
export const PARTIAL_FAILURE = 'PartialFailure';
/** The policy has no effect. Absent otherwise. */
export const FAILURE = 'Failure';

/** The conditions that we write. */
export const OUR_CONDITIONS: readonly string[] = [ACCEPTED, PARTIAL_FAILURE, FAILURE];
