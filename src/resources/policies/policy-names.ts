// Names derived from a policy: its id and its revisions; labels and annotations of policies.
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

/** Prefixes of ids by kind. Kubewarden's since 1.37; earlier ones could collide (GHSA-m5vp-9g65-pv6v). */
const PREFIXES: Readonly<Record<string, string>> = {
  ClusterAdmissionPolicy: 'kw.cap',
  AdmissionPolicy: 'kw.ap',
  ClusterAdmissionPolicyGroup: 'kw.capg',
  AdmissionPolicyGroup: 'kw.apg',
};

/** Prefixes of the ids of governance policies, which no policy server knows. */
const GOVERNANCE_PREFIXES: Readonly<Record<string, string>> = { Policy: 'ocm.policy' };

/** Whether it is a kind of admission policies. */
export function isPolicyKind(kind: string): boolean {
  return Object.hasOwn(PREFIXES, kind);
}

/** Whether it is a kind of governance policies that have revisions. */
export function isRevisedGovernanceKind(kind: string): boolean {
  return Object.hasOwn(GOVERNANCE_PREFIXES, kind);
}

/**
 * The id of a policy: of an admission policy its path on the policy server, and the name of its webhook configuration. Unique,
 * because a namespace has no dots.
 */
export function policyId({ kind, metadata }: Pick<KubernetesObject, 'kind' | 'metadata'>): string {
  const { namespace, name = '' } = metadata;
  return [PREFIXES[kind] ?? GOVERNANCE_PREFIXES[kind], ...(namespace === undefined ? [] : [namespace]), name].join('.');
}

/** Whether the id belongs to a policy of a namespace, whose author may be a tenant. */
export function isNamespacedPolicyId(id: string): boolean {
  return id.startsWith('kw.ap.') || id.startsWith('kw.apg.');
}

/** The namespace of a policy by its id, or that of a member of a group; undefined for policies of the cluster. */
export function namespaceOfPolicyId(id: string): string | undefined {
  return isNamespacedPolicyId(id) ? id.split('.', 3)[2] : undefined;
}

/** Kubernetes' limit of the name of an object (DNS subdomain, RFC 1123). */
const MAX_NAME_LENGTH = 253;
/** Length of the hash that replaces the cut part of an id: 40 bits, to distinguish policies with equal prefixes. */
const CUT_DIGITS = 10;

/** The name of a PolicyRevision: `kw.cap.no-privileged-pods-3`. Long ids are cut. */
export function revisionName(id: string, revision: number): string {
  const name = `${id}-${revision}`;
  if (name.length <= MAX_NAME_LENGTH) {
    return name;
  }
  const tail = `-${createHash('sha256').update(id).digest('hex').slice(0, CUT_DIGITS)}-${revision}`;
  // The cut part of a name must not end with a dot or dash.
  return `${id.slice(0, MAX_NAME_LENGTH - tail.length).replace(/[-.]+$/, '')}${tail}`;
}

/** Label of PolicyRevisions and PolicyServerReplicas: their PolicyServer. */
export const POLICY_SERVER_LABEL = 'portcullis.dev/policy-server';
/** Label of PolicyRevisions: the uid of their policy, for listing. */
export const POLICY_UID_LABEL = 'portcullis.dev/policy-uid';
/** Label of ClusterRoles whose rules the controller may grant to policy servers. */
export const CONTEXT_AWARE_LABEL = 'rbac.portcullis.dev/aggregate-to-context-aware';
/** Label of ClusterRoles with kinds that the auditor may read. */
export const AUDITOR_LABEL = 'rbac.portcullis.dev/aggregate-to-auditor';

/** The finalizers of all versions of Kubewarden's controller, on policies and PolicyServers. */
export const KUBEWARDEN_FINALIZERS: ReadonlySet<string> = new Set(['kubewarden.io/finalizer', 'kubewarden']);

/** Reason of the event for a `rollbackTo` annotation that cannot be followed. */
export const ROLLBACK_FAILED = 'RollbackFailed';

/** The field manager of controllers' writes. */
export const CONTROLLER_FIELD_MANAGER = 'portcullis-controller';
/** The name of the auditor's service account. */
export const AUDITOR_ACCOUNT = 'portcullis-auditor';
/** The field manager of the auditor's writes. */
export const AUDITOR_FIELD_MANAGER = 'portcullis-auditor';

/** Annotations of policies, set by kubectl or `portcullis rollout`. */
export const ANNOTATIONS = {
  /** Number of the revision that serves whatever the spec says, until the annotation is removed. */
  pin: 'portcullis.dev/pin',
  /**
   * Number of the revision whose spec is restored, or `previous`. The controller restores it and removes the
   * annotation.
   */
  rollbackTo: 'portcullis.dev/rollback-to',
  /** A request to resolve the modules again, since tags may have moved: made by any change of the value. */
  refresh: 'portcullis.dev/refresh',
  /** Maximum number of revisions kept besides serving ones. Also on PolicyServers, for all of their policies. */
  revisionHistoryLimit: 'portcullis.dev/revision-history-limit',
  /** `Available` or `AllReplicas`. Also on PolicyServers. */
  /** Of a policy, or of a PolicyServer for all of its policies: why they are not enforced, until it is removed. */
  disarmed: 'portcullis.dev/disarmed',
  rolloutStrategy: 'portcullis.dev/rollout-strategy',
  /** `90s`, `5m`: how long a rollout may make no progress before the strategy decides. Also on PolicyServers. */
  progressDeadline: 'portcullis.dev/progress-deadline',
  /** `Own`: the policy gets its own webhook. */
  webhook: 'portcullis.dev/webhook',
  /** On PolicyServers of another controller: `true` lets Portcullis run them. */
  takeOver: 'portcullis.dev/take-over',
  /**
   * On PolicyServers: hosts, `host` or `host:port`, separated by commas, that modules of namespaced policies may come from
   * although their addresses are not public.
   */
  tenantModuleHosts: 'portcullis.dev/tenant-module-hosts',
  /**
   * On PolicyServers: the modules that namespaced policies may use besides builtin ones: references and digests, separated by
   * commas; `*` for all. Without it: none; all, where the PolicyServer was taken over from Kubewarden.
   */
  tenantModules: 'portcullis.dev/tenant-modules',
  /** On PolicyServers: mirrors of registries, `HOST=URL`, separated by commas, which are tried in their order before the registry. */
  registryMirrors: 'portcullis.dev/registry-mirrors',
  /** On NetworkPolicies: what the network providers do with it, in one line. Written where that is switched on. */
  networkPolicyStatus: 'portcullis.dev/network-policy-status',
} as const;

/** The annotation `refresh` of a policy. It is copied into statuses. */
const REFRESH_REQUEST = /^[\x20-\x7e]{1,64}$/;

/** The value of a policy's annotation `refresh`; undefined if there is none, or it is invalid. */
export function refreshRequest(annotations: Readonly<Record<string, string>> = {}): string | undefined {
  const value = Object.hasOwn(annotations, ANNOTATIONS.refresh) ? annotations[ANNOTATIONS.refresh] : undefined;
  return value !== undefined && REFRESH_REQUEST.test(value) ? value : undefined;
}
