/**
 * `gained`: the share may have namespaces that it had not; others may be gone. `lost`: some may be gone. `writing`: the share is the
 * same, and what may be written has changed.
 */
export type ShareChange = 'gained' | 'lost' | 'writing';

/** The part of a cluster that one of several auditors judges, by namespace. The namespace '' stands for objects of none. */
export interface AuditShare {
  /** Whether this auditor judges the objects of a namespace. */
  isOwn(namespace: string): boolean;
  /** Whether it may also write what it knows of them: no other auditor does so now. */
  mayWrite(namespace: string): boolean;
  /** Returns how to end that. */
  onChange(listener: (change: ShareChange) => void): () => void;
}

/** The share of an auditor without others. */
export const WHOLE_CLUSTER: AuditShare = {
  isOwn: () => true,
  mayWrite: () => true,
  onChange: () => () => undefined,
};
