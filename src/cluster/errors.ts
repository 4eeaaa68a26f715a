import { CodedError } from '../values/index.ts';

export type ClusterErrorCode =
  /** The cluster could not be reached, or the connection broke. */
  | 'unreachable'
  /** The cluster did not answer in time. */
  | 'timeout'
  /** The answer is not one of an API server. */
  | 'answer-malformed'
  /** A kubeconfig cannot be read, is not one, or names something that is not in it. */
  | 'kubeconfig-invalid'
  /** No kubeconfig and no service account: there is no cluster to talk to. */
  | 'kubeconfig-missing'
  /** A token, certificate or exec plugin gives no credentials. */
  | 'credentials-failed'
  /** A selector, name or path is not what Kubernetes accepts. */
  | 'request-invalid'
  /** The file of an embedded cluster is damaged. */
  | 'database-corrupt'
  /** The file of an embedded cluster cannot be opened or written: no room, no right, or another process has it. */
  | 'database-unavailable'
  /** A port is in use. */
  | 'port-busy';

/** No usable answer from a cluster. The message says what happened, expected and got, and what to do. */
export class ClusterError extends CodedError<ClusterErrorCode> {
  override readonly name = 'ClusterError';
}
