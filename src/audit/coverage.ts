// What an audit has looked at, by policy and kind, and what it has not: nothing that was not read passes.
import { type ApiResource, ApiError } from '../cluster/index.ts';
import { groupResourceOf } from '../resources/index.ts';
import { errorText } from '../values/index.ts';

/** The kind of a coverage entry. */
export type AuditedKind = Pick<ApiResource, 'group' | 'version' | 'resource' | 'kind' | 'namespaced'>;

/**
 * `Scanned`: all objects were judged. `Pending`: they are yet to be, by the policy as it is now. `Partial`: some were not. `Forbidden`: a right is missing. `Failed`: the cluster or the policy
 * failed. `NotRead`: only done on demand. `NotServed`: the cluster has no such kind. `NotAuditable`: existing objects do not say what
 * the policy asks for.
 */
export type CoverageState =
  | 'Scanned'
  | 'Pending'
  | 'Partial'
  | 'Forbidden'
  | 'Failed'
  | 'NotRead'
  | 'NotServed'
  | 'NotAuditable';

/** Why an entry is not `Scanned`. docs/audit.md explains each. */
export type CoverageReason =
  /** The policy is new or changed, or the auditor has just started. */
  | 'NotScanned'
  /** The API server refuses to list the kind. */
  | 'Forbidden'
  /** A list failed. */
  | 'ListFailed'
  /** The list took so long, each time, that its next page was gone. */
  | 'Expired'
  /** A server that an API is aggregated from does not answer, so that its kinds are not known. */
  | 'NotDiscovered'
  /** The policy gave no verdict on some objects. */
  | 'NotJudged'
  /** One of several auditors has more policies than it can tell the others of. */
  | 'NotSummed'
  /** The policy cannot be loaded. */
  | 'NotLoaded'
  /** The policy cannot be read. */
  | 'Invalid'
  /** Secrets are read on demand only. */
  | 'Secrets'
  /** No rule names a kind that the cluster serves. */
  | 'NotServed'
  /** Objects of the kind cannot be listed. */
  | 'NotListable'
  | NotAuditableReason;

/** What keeps a policy from being audited. */
export type NotAuditableReason =
  /** `spec.backgroundAudit` is false. */
  | 'BackgroundAuditDisabled'
  /** A policy without rules matches no kinds. */
  | 'NoRules'
  /** Rules name subresources only. */
  | 'Subresource'
  /** Rules name neither CREATE nor UPDATE, or what is read depends on the operation. */
  | 'Operation'
  /** It reads the object as it was before. */
  | 'OldObject'
  /** It reads who sends the request, or what that user may do. */
  | 'UserInfo'
  /** It reads another part of the request that existing objects do not have. */
  | 'Request'
  /** It reads the cluster, and there is none. */
  | 'NoCluster'
  /** It is no policy of Portcullis. */
  | 'OtherKind';

/** A rule of a ClusterRole. */
export interface RoleRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** How many objects had which result. */
export interface Counts {
  /** Objects that were read. */
  readonly scanned: number;
  /** Of these, those that the policy is for. */
  readonly matched: number;
  readonly passed: number;
  readonly failed: number;
  readonly wouldChange: number;
  /** Neither passed nor failed, because exceptions apply. */
  readonly skipped: number;
  /** Without a verdict. */
  readonly unjudged: number;
}

/** What an audit knows by a policy of a kind. */
export interface Coverage {
  /** As in {@link AuditPolicy}; `*`: of all policies of a kind that could not be read. */
  readonly policy: string;
  /** Absent: what is said holds for all kinds. */
  readonly kind?: AuditedKind;
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly state: CoverageState;
  readonly reason?: CoverageReason;
  readonly message?: string;
  /** The right without which the kind cannot be read. */
  readonly missingRule?: RoleRule;
  /** What is taken for granted, because it cannot be known. */
  readonly assumes?: string;
  readonly counts: Counts;
  /** Of the auditor: findings that are counted, and beyond the number that it keeps. Absent: none. */
  readonly unlisted?: number;
  /** When the kind was read, in RFC 3339. Absent: it was not. */
  readonly scannedAt?: string;
}

export const NO_COUNTS: Counts = {
  scanned: 0,
  matched: 0,
  passed: 0,
  failed: 0,
  wouldChange: 0,
  skipped: 0,
  unjudged: 0,
};

/** Whether something is not known that an audit could know: with it, no result is clean. */
export function isIncomplete({ state }: Coverage): boolean {
  return (
    state === 'Pending' || state === 'Partial' || state === 'Forbidden' || state === 'Failed' || state === 'NotRead'
  );
}

/** The state of a kind whose objects were all read. */
export function judgedState({ unjudged, matched }: Counts): Pick<Coverage, 'state' | 'reason' | 'message'> {
  const message = `the policy gave no verdict on ${unjudged} of ${matched} objects`;
  return unjudged === 0 ? { state: 'Scanned' } : { state: 'Partial', reason: 'NotJudged', message };
}

/**
 * The part of an entry about a list that failed.
 * @param verbs what is needed to read the kind
 */
export function failedList(
  error: unknown,
  { group, resource }: AuditedKind,
  verbs: RoleRule['verbs'] = ['list'],
): Pick<Coverage, 'state' | 'reason' | 'message' | 'missingRule'> {
  const message = errorText(error);
  const code = error instanceof ApiError ? error.code : undefined;
  switch (code) {
    case 403:
      return {
        state: 'Forbidden',
        reason: 'Forbidden',
        message,
        missingRule: { apiGroups: [group], resources: [resource], verbs },
      };
    case 404:
      // Between discovery and the list, the kind was removed.
      return { state: 'NotServed', reason: 'NotServed', message };
    case 405:
      return { state: 'NotAuditable', reason: 'NotListable', message };
    case 410:
      return { state: 'Failed', reason: 'Expired', message };
    default:
      return { state: 'Failed', reason: 'ListFailed', message: `${groupResourceOf({ group, resource })}: ${message}` };
  }
}
