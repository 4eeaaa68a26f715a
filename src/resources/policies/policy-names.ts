// Names that are made of a policy: its id, its revisions; and the labels and annotations that people and programs use.
import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../kubernetes-object.ts';
import type {
  AdmissionPolicy,
  AdmissionPolicyGroup,
  ClusterAdmissionPolicy,
  ClusterAdmissionPolicyGroup,
} from './admission-policies.ts';

/** An admission policy of any kind. */
export type AdmissionPolicyObject =
  | ClusterAdmissionPolicy
  | AdmissionPolicy
  | ClusterAdmissionPolicyGroup
  | AdmissionPolicyGroup;

/** The spec of an admission policy of any kind. */
export type AdmissionPolicySpec = AdmissionPolicyObject['spec'];

type GroupSpec = (ClusterAdmissionPolicyGroup | AdmissionPolicyGroup)['spec'];

export function isGroupSpec(spec: AdmissionPolicySpec): spec is GroupSpec {
  return 'policies' in spec;
}

/** What ids begin with, by kind. Upstream's names since 1.37; earlier ones could collide (GHSA-m5vp-9g65-pv6v). */
const PREFIXES: Readonly<Record<string, string>> = {
  ClusterAdmissionPolicy: 'kw.cap',
  AdmissionPolicy: 'kw.ap',
  ClusterAdmissionPolicyGroup: 'kw.capg',
  AdmissionPolicyGroup: 'kw.apg',
};

/**
 * The id of a policy: its path on the policy server, and the name of its webhook configuration. A namespace has no dots,
 * so no two policies share one.
 */
export function policyId({ kind, metadata }: Pick<KubernetesObject, 'kind' | 'metadata'>): string {
  const { namespace, name = '' } = metadata;
  return [PREFIXES[kind], ...(namespace === undefined ? [] : [namespace]), name].join('.');
}

/** Whether an id is that of a policy of a namespace: of people who need not be those who run the cluster. */
export function isNamespacedPolicyId(id: string): boolean {
  return id.startsWith('kw.ap.') || id.startsWith('kw.apg.');
}

/** Kubernetes' limit of the name of an object (DNS subdomain, RFC 1123). */
const MAX_NAME_LENGTH = 253;
/** Hexadecimal digits that stand for the part of an id that is cut off: 40 bits, among policies with equal beginnings. */
const CUT_DIGITS = 10;

/** The name of the PolicyRevision of a number: `kw.cap.no-privileged-pods-3`. Ids that are too long are cut. */
export function revisionName(id: string, revision: number): string {
  const name = `${id}-${revision}`;
  if (name.length <= MAX_NAME_LENGTH) {
    return name;
  }
  const tail = `-${createHash('sha256').update(id).digest('hex').slice(0, CUT_DIGITS)}-${revision}`;
  // A name has no dot or dash before its tail.
  return `${id.slice(0, MAX_NAME_LENGTH - tail.length).replace(/[-.]+$/, '')}${tail}`;
}

/** Label of PolicyRevisions and PolicyServerReplicas: the PolicyServer that they are for. */
export const POLICY_SERVER_LABEL = 'portcullis.dev/policy-server';
/** Label of PolicyRevisions: the uid of the policy that they are of, so that one policy's can be listed by themselves. */
export const POLICY_UID_LABEL = 'portcullis.dev/policy-uid';

/** The reason of the event that says why an annotation `rollbackTo` could not be followed. */
export const ROLLBACK_FAILED = 'RollbackFailed';

/** Annotations of policies. Plain kubectl operations; `portcullis rollout` sets the same. */
export const ANNOTATIONS = {
  /** The number of the revision that serves whatever the spec says, until the annotation is removed. */
  pin: 'portcullis.dev/pin',
  /** The number of the revision whose spec is to be written back, or `previous`. The controller does it and removes it. */
  rollbackTo: 'portcullis.dev/rollback-to',
  /** How many revisions that do not serve are kept. Also on PolicyServers, for all of their policies. */
  revisionHistoryLimit: 'portcullis.dev/revision-history-limit',
  /** `Available` or `AllReplicas`. Also on PolicyServers. */
  rolloutStrategy: 'portcullis.dev/rollout-strategy',
  /** `90s`, `5m`: how long a rollout may make no progress before it is decided by strategy. Also on PolicyServers. */
  progressDeadline: 'portcullis.dev/progress-deadline',
  /** `Own`: the API server asks about the policy by itself, not together with others. */
  webhook: 'portcullis.dev/webhook',
  /** On PolicyServers that another controller made: `true` lets Portcullis run them from now on. */
  takeOver: 'portcullis.dev/take-over',
  /** On PolicyServers: hosts, `host` or `host:port`, separated by commas, that modules of namespaced policies may come from although their addresses are not public. */
  tenantModuleHosts: 'portcullis.dev/tenant-module-hosts',
} as const;
