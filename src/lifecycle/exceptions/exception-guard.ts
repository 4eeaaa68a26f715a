import { type Cluster, isNotFound } from '../../cluster/index.ts';
import { knownKind } from '../../resources/index.ts';
import { EXCEPTION_GUARD, EXCEPTION_STATUS_GUARD } from '../access-rules/index.ts';
import type { GuardState } from './exception-status.ts';

const API_VERSION = 'admissionregistration.k8s.io/v1';
/** Without the second, anybody might write that an exception is accepted. */
const GUARDS = [EXCEPTION_GUARD, EXCEPTION_STATUS_GUARD];
/** A policy, and what puts it in force. */
const GUARD_KINDS = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].map((kind) =>
  knownKind(API_VERSION, kind),
);
/** API servers watch such policies: it takes them less than a second. Milliseconds. */
const IN_FORCE_AFTER_MS = 10_000;

/** Since when API servers ask for the right to except, and let only the controller accept. @throws ApiError, ClusterError */
export async function readGuard(cluster: Pick<Cluster, 'get'>, signal: AbortSignal): Promise<GuardState> {
  try {
    const objects = await Promise.all(
      GUARDS.flatMap((name) => GUARD_KINDS.map((kind) => cluster.get(kind, { name }, { signal }))),
    );
    const created = objects.map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? ''));
    return { since: Math.max(...created) + IN_FORCE_AFTER_MS };
  } catch (error) {
    if (isNotFound(error)) {
      return 'missing';
    }
    throw error;
  }
}
