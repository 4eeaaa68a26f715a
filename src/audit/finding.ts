import type { AuditResult } from './audit-result.ts';

/** How serious a finding is, in the words of OpenReports. */
export type FindingSeverity = 'info' | 'low' | 'medium' | 'high' | 'critical';

/** What a policy says about an existing object, by the revision of the policy and the version of the object that were judged. */
export interface AuditFinding extends AuditResult {
  readonly policyId: string;
  /** Uid of the policy object. */
  readonly policyUid: string;
  /** `metadata.generation` of the policy object that was judged. */
  readonly policyGeneration?: number;
  /** `resourceVersion` of the judged object. Absent: the object does not exist, or its version is not known. */
  readonly objectVersion?: string;
  /** The part of the policy: a member, a template, a feature. */
  readonly rule?: string;
  readonly severity?: FindingSeverity;
  readonly category?: string;
}

/**
 * Called with each namespace whose findings changed. Undefined: stored results may be out of date anywhere, because a policy was judged
 * for the first time, or is gone.
 */
export type FindingsListener = (namespace: string | undefined) => void;

/** A source of findings, as they are now. */
export interface AuditFindings {
  /** Findings of the objects of a namespace; '' of objects of none. */
  of(namespace: string): readonly AuditFinding[];
  /** Namespaces that have findings. */
  namespaces(): Iterable<string>;
  /**
   * Whether all objects of a kind were judged by the policy as it is now, so that what is not among its findings is gone. Before that,
   * a stored result stays.
   */
  isSettled(policyUid: string, kind: { readonly group: string; readonly kind: string }, namespace: string): boolean;
  /** Whether the policy exists and is audited: results of all others are removed. Undefined: not known yet, so all results stay. */
  knowsPolicy(policyUid: string): boolean | undefined;
  /** Returns how to end that. */
  onChange(listener: FindingsListener): () => void;
}
