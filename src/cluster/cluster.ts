// The Cluster port: the interface by which controllers, the command line and the console use any cluster.
import type { JsonObject, JsonValue, KubernetesObject, ObjectKey, ResourceType } from '../resources/index.ts';

/** Options of every request. */
export interface RequestOptions {
  readonly signal?: AbortSignal;
}

export interface ListOptions extends RequestOptions {
  /** Absent: all namespaces. */
  readonly namespace?: string;
  /** In kubectl's syntax: `app=web,tier!=cache,env in (a, b)`. */
  readonly labelSelector?: string;
  /** `metadata.name=x`, and further fields of some kinds. */
  readonly fieldSelector?: string;
  /** Items per page; `continue` leads to the next one. */
  readonly limit?: number;
  readonly continue?: string;
  /** Absent: the newest. `0`: any version from the server's cache. */
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
}

/** A page of objects, and the cluster's version at that time. */
export interface ObjectList<T extends KubernetesObject = KubernetesObject> {
  readonly metadata: {
    readonly resourceVersion: string;
    /** For the next page; absent after the last one. */
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
  /** Each with its `apiVersion` and `kind`. */
  readonly items: readonly T[];
}

export interface WatchOptions extends RequestOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Changes after this version. Absent: existing objects come first, as ADDED. */
  readonly resourceVersion?: string;
  /** Request BOOKMARK events, which mark the version up to which the stream is complete. */
  readonly allowBookmarks?: boolean;
  /** Existing objects first, then a bookmark with the annotation `k8s.io/initial-events-end: "true"`, then changes (KEP-3157). */
  readonly sendInitialEvents?: boolean;
  /** The server ends the watch after this time. Default: the server's choice. */
  readonly timeoutSeconds?: number;
}

export interface WatchEvent<T extends KubernetesObject = KubernetesObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  /** A BOOKMARK has only `metadata.resourceVersion`. */
  readonly object: T;
}

/** How a server treats fields that are not in the schema: reject, warn, or drop silently. */
export type FieldValidation = 'Strict' | 'Warn' | 'Ignore';

export interface WriteOptions extends RequestOptions {
  /** Run all checks and admission, but store nothing. */
  readonly dryRun?: boolean;
  /** Owner of the fields that this request sets. Default: the client's name. */
  readonly fieldManager?: string;
  /** Default: Warn. */
  readonly fieldValidation?: FieldValidation;
  /** Called for each warning of the response. */
  readonly onWarning?: (text: string) => void;
}

/** `status` and `scale` change only their part of an object. Others (`token`, `eviction`, `binding`) can only be created. */
export interface SubresourceOptions {
  readonly subresource?: string;
}

export type Patch =
  /** RFC 7386. */
  | { readonly type: 'merge'; readonly body: JsonObject }
  /** RFC 6902. */
  | { readonly type: 'json'; readonly body: readonly JsonValue[] }
  /** Strategic merge patch: builtin kinds only. */
  | { readonly type: 'strategic'; readonly body: JsonObject }
  /** Server-side apply. `force` takes over fields of other managers. Needs a `fieldManager`. */
  | { readonly type: 'apply'; readonly body: JsonObject; readonly force?: boolean };

export interface DeleteOptions extends RequestOptions {
  readonly dryRun?: boolean;
  readonly gracePeriodSeconds?: number;
  /** Default: Background. */
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground';
  /** Reject (409) unless the object still has this uid and version. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly onWarning?: (text: string) => void;
}

/** A served resource, as discovery describes it. */
export interface ApiResource extends ResourceType {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  /** `status`, `scale`, … */
  readonly subresources: readonly string[];
}

export interface DiscoveryOptions {
  /** Documents older than this are fetched again. Milliseconds. Default: the client's choice. */
  readonly maxAgeMs?: number;
}

/** The resources that a cluster serves. */
export interface Discovery {
  /** All resources in all versions that are served; the preferred version of a group comes first. */
  resources(options?: RequestOptions & DiscoveryOptions): Promise<readonly ApiResource[]>;
  /**
   * `group/version` of APIs whose resources are not known, because the servers that they are aggregated from do not answer. Absent: there
   * are no such servers.
   */
  unavailable?(options?: RequestOptions & DiscoveryOptions): Promise<readonly string[]>;
  /** The resource of a kind; undefined when it is not served. Refreshes the discovery documents first, within limits. */
  find(apiVersion: string, kind: string, options?: RequestOptions): Promise<ApiResource | undefined>;
}

/** The OpenAPI document of a group and version. */
export interface OpenApiText {
  readonly text: string;
  /** Equal for equal texts. */
  readonly hash: string;
}

/** The schemas that a cluster publishes (KEP-2896). Every authenticated user may read them. */
export interface OpenApiSource {
  /** Differs after a document was added, removed or changed. */
  revision(options?: RequestOptions): Promise<string>;
  /** The document of a group and version; undefined if there is none. */
  document(apiVersion: string, options?: RequestOptions): Promise<OpenApiText | undefined>;
}

/**
 * A cluster as one user sees it. All methods reject with {@link ApiError} for error responses, and with {@link
 * ClusterError} when there is no valid response. Returned objects are shared: never change them.
 */
export interface Cluster {
  readonly discovery: Discovery;
  /** Absent: no schemas are known. */
  readonly openApi?: OpenApiSource;

  get<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options?: RequestOptions & SubresourceOptions & { readonly resourceVersion?: string },
  ): Promise<T>;

  /** One page. See `listAll` for all of them. */
  list<T extends KubernetesObject>(type: ResourceType<T>, options?: ListOptions): Promise<ObjectList<T>>;

  /**
   * Changes as they happen. Ends when the server ends it (normal, after some minutes). Throws {@link ApiError} for an
   * error event in the stream (410 `Expired`: list again), {@link ClusterError} when the connection broke.
   */
  watch<T extends KubernetesObject>(type: ResourceType<T>, options?: WatchOptions): AsyncIterable<WatchEvent<T>>;

  /** `namespace` and `name` are the object's own. A subresource (`token`, `eviction`) belongs to the object of that name. */
  create<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    options?: WriteOptions & SubresourceOptions,
  ): Promise<T>;

  /** Replaces the object. Fails with 409 when it has a `resourceVersion` that is not the newest. */
  update<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    options?: WriteOptions & SubresourceOptions,
  ): Promise<T>;

  patch<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: Patch,
    options?: WriteOptions & SubresourceOptions,
  ): Promise<T>;

  /** The object while finalizers hold it; undefined when it is deleted. */
  delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options?: DeleteOptions,
  ): Promise<T | undefined>;

  /** Deletes all matching objects. */
  deleteCollection(
    type: ResourceType,
    options?: DeleteOptions & Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>,
  ): Promise<void>;
}
