import type { KubernetesObject, ResourceType, Selector } from '../../resources/index.ts';
import { CodedError } from '../../values/index.ts';

/** The objects of a cluster as they are at one time. Reads throw {@link ObjectReadError}. */
export interface ObjectSource {
  /** A kind; undefined if the API server does not know it. */
  kind(apiVersion: string, kind: string): ResourceType | undefined;
  /** An object; undefined if it does not exist. */
  get(type: ResourceType, namespace: string, name: string): KubernetesObject | undefined;
  /** The objects of a namespace; for a cluster-scoped kind the namespace is empty. */
  list(type: ResourceType, namespace: string, selector: Selector): readonly KubernetesObject[];
  /** The names of the same objects. */
  names(type: ResourceType, namespace: string, selector: Selector): readonly string[];
  namespaces(): readonly KubernetesObject[];
}

/** An object that cannot be read, such as for want of rights. The message is that of the API server. */
export class ObjectReadError extends CodedError<'unreadable'> {
  override readonly name = 'ObjectReadError';
}
