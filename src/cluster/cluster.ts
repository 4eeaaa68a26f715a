// The Cluster port: what controllers, the command line and the console see of a cluster, whichever it is.
import type { JsonObject, JsonValue, KubernetesObject, ObjectKey, ResourceType } from '../resources/index.ts';

/** Options that every request has. */
export interface RequestOptions {
  readonly signal?: AbortSignal;
}

export interface ListOptions extends RequestOptions {
  /** Absent: all namespaces. */
  readonly namespace?: string;
  /** As kubectl writes it: `app=web,tier!=cache,env in (a, b)`. */
  readonly labelSelector?: string;
  /** `metadata.name=x`, and the fields that a kind has besides. */
  readonly fieldSelector?: string;
  /** Most items of one answer; the rest is behind `continue`. */
  readonly limit?: number;
  readonly continue?: string;
  /** Absent: the newest. `0`: any that the server has at hand. */
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
}

/** A page of objects, and the version of the cluster that it shows. */
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
  /** Changes after this version. Absent: what is there comes first, as ADDED. */
  readonly resourceVersion?: string;
  /** Ask for BOOKMARK events: versions up to which nothing was missed. */
  readonly allowBookmarks?: boolean;
  /** What is there first, then a bookmark with the annotation `k8s.io/initial-events-end: "true"`, then changes. */
  readonly sendInitialEvents?: boolean;
  /** The server ends the watch after this time. Default: the server's choice. */
  readonly timeoutSeconds?: number;
}

export interface WatchEvent<T extends KubernetesObject = KubernetesObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  /** Of a BOOKMARK only `metadata.resourceVersion` counts. */
  readonly object: T;
}

/** What a server does with fields that the schema does not know: reject, warn, or drop silently. */
export type FieldValidation = 'Strict' | 'Warn' | 'Ignore';

export interface WriteOptions extends RequestOptions {
  /** Do everything except storing it. */
  readonly dryRun?: boolean;
  /** Who owns the fields that this request sets. Default: the client's name. */
  readonly fieldManager?: string;
  /** Default: Warn. */
  readonly fieldValidation?: FieldValidation;
  /** Warnings that come with the answer. */
  readonly onWarning?: (text: string) => void;
}

/** `status` and `scale` change only their part of an object. Others (`token`, `eviction`, `binding`) are only created. */
export interface SubresourceOptions {
  readonly subresource?: string;
}

export type Patch =
  /** RFC 7386. */
  | { readonly type: 'merge'; readonly body: JsonObject }
  /** RFC 6902. */
  | { readonly type: 'json'; readonly body: readonly JsonValue[] }
  /** Kubernetes' own; builtin kinds only. */
  | { readonly type: 'strategic'; readonly body: JsonObject }
  /** Server-side apply: `body` is what the manager wants. `force` takes fields from other managers. Needs a `fieldManager`. */
  | { readonly type: 'apply'; readonly body: JsonObject; readonly force?: boolean };

export interface DeleteOptions extends RequestOptions {
  readonly dryRun?: boolean;
  readonly gracePeriodSeconds?: number;
  /** Default: Background. */
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground';
  /** Refuse (409) unless the object is still this one. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly onWarning?: (text: string) => void;
}

/** One served resource as discovery tells it. */
export interface ApiResource extends ResourceType {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  /** `status`, `scale`, … */
  readonly subresources: readonly string[];
}

/** What a cluster serves. */
export interface Discovery {
  /** All resources in all versions that are served; the preferred version of a group comes first. */
  resources(options?: RequestOptions): Promise<readonly ApiResource[]>;
  /** The resource of a kind. Undefined when it is not served. Asks anew, within limits, before it says so. */
  find(apiVersion: string, kind: string, options?: RequestOptions): Promise<ApiResource | undefined>;
}

/**
 * A cluster, as one user sees it. All methods reject with {@link ApiError} when the cluster refuses, and with
 * {@link ClusterError} when it could not be asked. Objects that come back are shared: never change them.
 */
export interface Cluster {
  readonly discovery: Discovery;

  get<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options?: RequestOptions & SubresourceOptions & { readonly resourceVersion?: string },
  ): Promise<T>;

  /** One page. See `listAll` for all of them. */
  list<T extends KubernetesObject>(type: ResourceType<T>, options?: ListOptions): Promise<ObjectList<T>>;

  /**
   * Changes as they happen. Ends when the server ends it (normal, after some minutes), throws {@link ApiError} when the
   * server says so in the stream (410 `Expired`: list again), {@link ClusterError} when the connection broke.
   */
  watch<T extends KubernetesObject>(type: ResourceType<T>, options?: WatchOptions): AsyncIterable<WatchEvent<T>>;

  /** `namespace` and `name` are the object's own. A subresource (`token`, `eviction`) belongs to the object of that name. */
  create<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    options?: WriteOptions & SubresourceOptions,
  ): Promise<T>;

  /** Replaces. Fails with 409 when the object has a `resourceVersion` and it is not the newest. */
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

  /** The object as it is while finalizers hold it, or undefined when it is gone. */
  delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options?: DeleteOptions,
  ): Promise<T | undefined>;

  /** Deletes all that match. */
  deleteCollection(
    type: ResourceType,
    options?: DeleteOptions & Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>,
  ): Promise<void>;
}
