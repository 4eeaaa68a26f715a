// The certificate conditions of a PolicyServer, with Kubewarden's names.
import { AUTHORITY_SECRET } from '../certificates/certificate-names.ts';
import { OBJECT_REASONS, type ReportedCondition } from './policy-server-conditions.ts';

/** Condition: whether the trusted CAs are known. */
export const AUTHORITY_CONDITION = 'CARootSecretReconciled';
/** Condition: whether the Secrets with the certificates of the processes are current. */
export const CERTIFICATE_CONDITION = 'CertSecretReconciled';

/** The state of certificates. */
export interface CertificateState {
  /** Whether certificates were checked since this process leads. */
  readonly isKnown: boolean;
  /** PEM of all trusted CAs; undefined until known. */
  bundle(): string | undefined;
  /** Failures, each with its PolicyServer if it concerns a single one. */
  readonly problems: readonly {
    readonly secret: string;
    readonly policyServer?: string | undefined;
    readonly reason: string;
    readonly message: string;
  }[];
  /** Calls `listener` after each change. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
}

/** Empty before the first check: conditions of the previous leader stay in the status until then. */
export function certificateConditions(policyServer: string, state: CertificateState): readonly ReportedCondition[] {
  if (!state.isKnown) {
    return [];
  }
  const problem = state.problems.find((one) => one.policyServer === policyServer);
  if (state.problems.some(({ reason }) => reason === 'CertificatesNotKept')) {
    // The state of the Secrets is unknown.
    return [authorityCondition(state)];
  }
  return [
    authorityCondition(state),
    problem === undefined
      ? { type: CERTIFICATE_CONDITION, status: 'True', reason: OBJECT_REASONS.succeeded, message: '' }
      : {
          type: CERTIFICATE_CONDITION,
          status: 'False',
          reason: problem.reason,
          message: `Secret ${problem.secret}: ${problem.message}`,
        },
  ];
}

function authorityCondition(state: CertificateState): ReportedCondition {
  const type = AUTHORITY_CONDITION;
  const problem = state.problems.find(({ secret }) => secret === AUTHORITY_SECRET);
  if (problem !== undefined) {
    return { type, status: 'False', reason: problem.reason, message: `Secret ${problem.secret}: ${problem.message}` };
  }
  return state.bundle() === undefined
    ? {
        type,
        status: 'Unknown',
        reason: OBJECT_REASONS.notKnown,
        message: 'the trusted certificate authorities are not known yet',
      }
    : { type, status: 'True', reason: OBJECT_REASONS.succeeded, message: '' };
}
