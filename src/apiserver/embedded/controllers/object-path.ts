/** The location of an object, as a key of queues and indexes. */
export interface ObjectPath {
  readonly collection: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
}

/** A character that no part of a path contains. */
const SEPARATOR = '\u0000';

export function pathText({ collection, namespace, name }: ObjectPath): string {
  return [collection, namespace, name].join(SEPARATOR);
}

export function parsePath(text: string): ObjectPath {
  const [collection = '', namespace = '', name = ''] = text.split(SEPARATOR);
  return { collection, namespace, name };
}
