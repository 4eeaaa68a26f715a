// What an API server does with objects of single kinds when they are written, beyond defaults and validation.
import { isJsonObject } from '../../resources/index.ts';
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';
import type { UserInfo } from './request.ts';

/** A write as the behaviour of a kind sees it. May change the object. Throws ApiError to refuse. */
export interface KindWrite {
  readonly object: MutableObject;
  /** What it replaces; undefined when it is created. */
  readonly old: KubernetesObject | undefined;
  readonly subresource: string | undefined;
  readonly user: UserInfo;
  /** Controllers of the cluster itself. */
  readonly isInternal: boolean;
  readonly isDryRun: boolean;
}

/** Called after status and generation are settled, before validation. */
export type KindBehaviour = (write: KindWrite) => void;

/** By collection. */
export type KindBehaviours = ReadonlyMap<string, KindBehaviour>;

/** Namespaces carry their own name as a label, and a finalizer of their own until they are empty. */
export function namespaceBehaviour({ object, old }: KindWrite): void {
  const { name = '', labels } = object.metadata as { name?: string; labels?: Record<string, string> };
  if (name !== '') {
    object.metadata['labels'] = { ...labels, 'kubernetes.io/metadata.name': name };
  }
  if (old === undefined) {
    const spec = isJsonObject(object['spec']) ? object['spec'] : {};
    object['spec'] = { ...spec, finalizers: ['kubernetes'] };
    object['status'] = { phase: 'Active' };
  }
}
