export { ApiError, isNotFound, unlessGone } from './api-error.ts';
export type { ApiErrorReason, Status, StatusCause, StatusDetails } from './api-error.ts';
export type {
  ApiResource,
  Cluster,
  DeleteOptions,
  Discovery,
  FieldValidation,
  ListOptions,
  ObjectList,
  Patch,
  RequestOptions,
  SubresourceOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './cluster.ts';
export { EMBEDDED_BUILD } from './embedded-build.ts';
export { ClusterError } from './errors.ts';
export type { ClusterErrorCode } from './errors.ts';
export { fixedCredentials, tokenCredentials } from './kubernetes/connection.ts';
export type { Connection, Credentials, CredentialSource, Impersonation } from './kubernetes/connection.ts';
export { inClusterAccess } from './kubernetes/in-cluster.ts';
export type { ClusterAccess, InClusterOptions } from './kubernetes/in-cluster.ts';
export { LineSplitter } from './kubernetes/line-splitter.ts';
export { loadKubeconfig } from './kubernetes/kubeconfig.ts';
export type { KubeconfigOptions } from './kubernetes/kubeconfig.ts';
export { KubernetesCluster, TABLE_ACCEPT } from './kubernetes/kubernetes-cluster.ts';
export type {
  KubernetesClusterOptions,
  RawAnswer,
  RawRequestOptions,
  ServerVersion,
} from './kubernetes/kubernetes-cluster.ts';
export { resourcePath } from './kubernetes/resource-path.ts';
export { listAll, PAGE_SIZE } from './list-all.ts';
export { Backoff } from './backoff.ts';
export { Reflector, SILENCE_LIMIT_MS } from './reflector.ts';
export type { ReflectorHandler, ReflectorOptions, ReflectorReport } from './reflector.ts';
export { ObjectSelection } from './object-selection.ts';
export type { SelectableKind, SelectionOptions } from './object-selection.ts';
