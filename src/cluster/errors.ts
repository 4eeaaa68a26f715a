import { CodedError } from '../values/index.ts';

export type ClusterErrorCode =
  /** The cluster could not be reached, or the connection broke. */
  | 'unreachable'
  /** The cluster did not respond in time. */
  | 'timeout'
  /** The response does not come from an API server. */
  | 'answer-malformed'
  /** A kubeconfig is unreadable or invalid, or refers to a missing entry. */
  | 'kubeconfig-invalid'
  /** No kubeconfig and no service account: no cluster is configured. */
  | 'kubeconfig-missing'
  /** A token, certificate or exec plugin provides no credentials. */
  | 'credentials-failed'
  /** A selector, name or path is invalid for Kubernetes. */
  | 'request-invalid'
  /** The file of an embedded cluster is damaged. */
  | 'database-corrupt'
  /**
   * The file of an embedded cluster cannot be opened or written: no space, no permission, or locked by another process.
   */
  | 'database-unavailable'
  /** A port is in use. */
  | 'port-busy';

/** No valid response from a cluster. The message says what happened, was expected and received, and what to do. */
export class ClusterError extends CodedError<ClusterErrorCode> {
  override readonly name = 'ClusterError';
}
