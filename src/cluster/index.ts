export { reviewAccess, SUBJECT_ACCESS_REVIEWS } from './access-review.ts';
export { ApiError, isForbidden, isNotFound, unlessForbidden, unlessGone } from './api-error.ts';
export type { ApiErrorReason, Status } from './api-error.ts';
export type {
  ApiResource,
  Cluster,
  DeleteOptions,
  Discovery,
  FieldValidation,
  ListOptions,
  ObjectList,
  OpenApiSource,
  OpenApiText,
  Patch,
  RequestOptions,
  SubresourceOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './cluster.ts';
export { EMBEDDED_BUILD } from './embedded-build.ts';
export { ClusterError } from './errors.ts';
export { connectionAs, tokenCredentials } from './kubernetes/connection.ts';
export type { Connection } from './kubernetes/connection.ts';
export { inClusterAccess } from './kubernetes/in-cluster.ts';
export { LineSplitter } from './kubernetes/line-splitter.ts';
export { loadKubeconfig } from './kubernetes/kubeconfig.ts';
export { KubernetesCluster, TABLE_ACCEPT } from './kubernetes/kubernetes-cluster.ts';
export type { ServerVersion } from './kubernetes/kubernetes-cluster.ts';
export { resourcePath } from './kubernetes/resource-path.ts';
export { listAll } from './list-all.ts';
export { listPages } from './list-pages.ts';
export { listReadable } from './list-readable.ts';
export { Backoff } from './backoff.ts';
export { Reflector } from './reflector.ts';
export type { ReflectorReport } from './reflector.ts';
export { ObjectSelection } from './object-selection.ts';
export type { SelectionOptions } from './object-selection.ts';
