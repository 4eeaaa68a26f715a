// Objects of the Kubernetes API. Objects from a cluster are read-only, because caches and stores share them.

/** Refers to the owner of an object (`metav1.OwnerReference`). */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** Whether the owner manages this object; at most one does. */
  readonly controller?: boolean;
  /** Whether a foreground deletion of the owner waits for this object. */
  readonly blockOwnerDeletion?: boolean;
}

/** The fields of one manager, and its operation (`metav1.ManagedFieldsEntry`). */
export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: 'Apply' | 'Update';
  readonly apiVersion?: string;
  /** RFC 3339, whole seconds. */
  readonly time?: string;
  readonly fieldsType?: 'FieldsV1';
  readonly fieldsV1?: FieldsV1;
  readonly subresource?: string;
}

/** A set of fields: `f:name`, `k:{"name":"a"}`, `v:"x"`, `i:0`, and `.` for the value itself. */
export interface FieldsV1 {
  readonly [key: string]: FieldsV1;
}

/** The annotation in which client-side `kubectl apply` keeps a copy of the manifest. */
export const LAST_APPLIED_ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

/** `metav1.ObjectMeta`. */
export interface ObjectMeta {
  readonly name?: string;
  /** Prefix of a generated name: five random characters follow. */
  readonly generateName?: string;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly uid?: string;
  /** Opaque to clients, which only compare it and send it back. */
  readonly resourceVersion?: string;
  /** Incremented by changes of the spec, not of metadata and status. */
  readonly generation?: number;
  /** RFC 3339, whole seconds. */
  readonly creationTimestamp?: string;
  /** Set while the object waits for its finalizers. */
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
  readonly managedFields?: readonly ManagedFieldsEntry[];
  readonly selfLink?: string;
}

/** Any object of a cluster. Known kinds extend it with their `spec` and `status`. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** An object under construction. */
export interface MutableObject {
  apiVersion: string;
  kind: string;
  metadata: { [key: string]: unknown };
  [field: string]: unknown;
}
