import type {
  FieldError,
  KubernetesObject,
  MutableObject,
  ResourceType,
  Schema,
  TableColumn,
} from '../resources/index.ts';
import type { NameRule } from '../resources/validation/index.ts';

/** Prints objects of a kind as table rows. */
export interface TablePrinter {
  readonly columns: readonly TableColumn[];
  /** One cell per column. Ages are relative to `now`, milliseconds since 1970. */
  cells(object: KubernetesObject, now: number): readonly unknown[];
}

/** A kind as an API server serves it. */
export interface ResourceDefinition<T extends KubernetesObject = KubernetesObject> extends ResourceType<T> {
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** For example `all`. */
  readonly categories: readonly string[];
  /** The schema of the whole object, with `apiVersion`, `kind` and `metadata`. A function, because large ones are read lazily. */
  readonly schema: () => Schema;
  /** Whether `status` is a subresource. */
  readonly hasStatus: boolean;
  /** Field paths of the `scale` subresource, where there is one: `.spec.replicas`. */
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string;
  };
  readonly printer: TablePrinter;
  /**
   * `custom`: from a CustomResourceDefinition, whose schema has all defaults and validation; strategic merge patches are not
   * supported. `builtin`: a kind of Kubernetes, whose schema is completed by the functions below.
   */
  readonly origin: 'builtin' | 'custom';
  /** Default: the verbs of stored kinds. Kinds that can only be created (reviews) have `['create']`. */
  readonly verbs?: readonly string[];
  /** Sets defaults that the schema does not declare. Changes the object. */
  readonly applyDefaults?: (object: MutableObject) => void;
  /** Validates what the schema cannot express. `old` is the object that an update replaces. */
  readonly validate?: (object: KubernetesObject, old: KubernetesObject | undefined) => readonly FieldError[];
  /** Warnings about a valid object. `old` is the object that an update replaces. Default: none. */
  readonly warnings?: (object: KubernetesObject, old: KubernetesObject | undefined) => readonly string[];
  /** A warning about each request for this version. Default: none. */
  readonly deprecation?: string;
  /** The rule for object names. Default: `dns-subdomain`. */
  readonly nameRule?: NameRule;
  /** Fields for selectors besides `metadata.name` and `metadata.namespace`: `spec.nodeName`. Default: none. */
  readonly selectableFields?: readonly string[];
  /** Whether changes of `spec` increase `metadata.generation`. Default: true for custom kinds, false for builtin ones. */
  readonly countsGenerations?: boolean;
}
