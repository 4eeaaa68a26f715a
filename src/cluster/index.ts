export { ApiError } from './api-error.ts';
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
export { ClusterError } from './errors.ts';
export type { ClusterErrorCode } from './errors.ts';
