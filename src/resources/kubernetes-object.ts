// Objects as the Kubernetes API knows them. Everything that comes out of a cluster is read-only: caches and stores share it.

/** Names the object that this one belongs to (`metav1.OwnerReference`). */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** Whether the owner is the one that manages this object; at most one is. */
  readonly controller?: boolean;
  /** Whether a foreground deletion of the owner waits for this object. */
  readonly blockOwnerDeletion?: boolean;
}

/** Which fields one manager has set, and how (`metav1.ManagedFieldsEntry`). */
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

/** A set of fields: `f:name`, `k:{"name":"a"}`, `v:"x"`, `i:0`, and `.` for the thing itself. */
export interface FieldsV1 {
  readonly [key: string]: FieldsV1;
}

/** `metav1.ObjectMeta`. */
export interface ObjectMeta {
  readonly name?: string;
  /** A name is made of this and five random characters when there is none. */
  readonly generateName?: string;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly uid?: string;
  /** Opaque to clients: only ever compared for equality, and given back. */
  readonly resourceVersion?: string;
  /** Counts changes of what is desired; changes of metadata and status leave it alone. */
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

/** Any object of a cluster. Kinds that are known extend it with their `spec` and `status`. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** An object while it is being made. */
export interface MutableObject {
  apiVersion: string;
  kind: string;
  metadata: { [key: string]: unknown };
  [field: string]: unknown;
}
