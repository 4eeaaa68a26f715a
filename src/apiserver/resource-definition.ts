import type {
  FieldError,
  KubernetesObject,
  MutableObject,
  ResourceType,
  Schema,
  TableColumn,
} from '../resources/index.ts';
import type { NameRule } from '../resources/validation/index.ts';

/** How objects of a kind become rows of a table. */
export interface TablePrinter {
  readonly columns: readonly TableColumn[];
  /** One cell per column. `now` is for ages. Milliseconds since 1970. */
  cells(object: KubernetesObject, now: number): readonly unknown[];
}

/** A kind as a server serves it: what an API server knows of it beyond its name. */
export interface ResourceDefinition<T extends KubernetesObject = KubernetesObject> extends ResourceType<T> {
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** Such as `all`. */
  readonly categories: readonly string[];
  /** Of the whole object, `apiVersion`, `kind` and `metadata` included. Called when it is needed: large ones are read lazily. */
  readonly schema: () => Schema;
  /** Whether `status` is a subresource of its own. */
  readonly hasStatus: boolean;
  /** Field paths of the `scale` subresource, where there is one: `.spec.replicas`. */
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string;
  };
  readonly printer: TablePrinter;
  /**
   * `custom`: of a CustomResourceDefinition. Unknown fields are pruned, defaults and validation come from the schema, and
   * there is no strategic merge patch. `builtin`: of Kubernetes itself; what its schema does not say is in the functions below.
   */
  readonly origin: 'builtin' | 'custom';
  /** Verbs besides those that every stored kind has are never needed; kinds that are only created (reviews) have `['create']`. */
  readonly verbs?: readonly string[];
  /** Fills in what builtin kinds get without saying so in their schema. Changes the object. */
  readonly applyDefaults?: (object: MutableObject) => void;
  /** What the schema cannot say. `old` is the object that an update replaces. */
  readonly validate?: (object: KubernetesObject, old: KubernetesObject | undefined) => readonly FieldError[];
  /** How names of objects are checked. Default: a DNS subdomain of at most 253 characters. */
  readonly nameRule?: NameRule;
  /** What field selectors may ask for besides `metadata.name` and `metadata.namespace`: `spec.nodeName`. Default: nothing. */
  readonly selectableFields?: readonly string[];
  /** Whether changes of `spec` count in `metadata.generation`. Default: true for custom kinds, false for builtin ones. */
  readonly countsGenerations?: boolean;
}
