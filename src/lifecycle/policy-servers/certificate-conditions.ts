// What the status of a PolicyServer says of its certificates. Kubewarden's names.
import { AUTHORITY_SECRET } from '../certificates/certificate-names.ts';
import { OBJECT_REASONS, type ReportedCondition } from './policy-server-conditions.ts';

/** Condition: whether it is known which CAs are trusted. */
export const AUTHORITY_CONDITION = 'CARootSecretReconciled';
/** Condition: whether the Secrets with the certificates of the processes are as they are to be. */
export const CERTIFICATE_CONDITION = 'CertSecretReconciled';

/** What is known of certificates. */
export interface CertificateState {
  /** Whether anybody has looked at them, since this process leads. */
  readonly isKnown: boolean;
  /** PEM of all trusted CAs; undefined while they are not known. */
  bundle(): string | undefined;
  /** What is wrong, with the PolicyServer that it is about, if it is about one. */
  readonly problems: readonly {
    readonly secret: string;
    readonly policyServer?: string | undefined;
    readonly reason: string;
    readonly message: string;
  }[];
  /** Tells of changes of any of these. Returns what ends it. */
  subscribe(listener: () => void): () => void;
}

/** Nothing until anybody has looked: what a leader before this one found stays in the status until then. */
export function certificateConditions(policyServer: string, state: CertificateState): readonly ReportedCondition[] {
  if (!state.isKnown) {
    return [];
  }
  const problem = state.problems.find((one) => one.policyServer === policyServer);
  if (state.problems.some(({ reason }) => reason === 'CertificatesNotKept')) {
    // Nobody knows how the Secrets of the processes are.
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
        message: 'it is not known which certificate authorities are trusted',
      }
    : { type, status: 'True', reason: OBJECT_REASONS.succeeded, message: '' };
}
