// Objects with parameters as policies get them, from a cluster or from files.
import type { KubernetesObject } from '../kubernetes-object.ts';

/**
 * Characters of parameters as JSON, and of an annotation with parameters: those of a tenant usually have some hundred. The
 * largest of 3,500 tenants take 115 MB in a thread, once each was used.
 */
export const MAX_PARAMETERS_LENGTH = 32_768;

/** The JSON of an object with parameters, or the length of one that is too long. */
export type ParametersText =
  | { readonly text: string; readonly length?: never }
  | { readonly length: number; readonly text?: never };

/** An object with the name, namespace and labels of its metadata. */
export function parametersText({ metadata, ...content }: KubernetesObject): ParametersText {
  const { name = '', namespace = '', labels = {} } = metadata;
  const text = JSON.stringify({ ...content, metadata: { name, namespace, labels } });
  return text.length > MAX_PARAMETERS_LENGTH ? { length: text.length } : { text };
}

/** `expected at most 32768 characters, got 40000` */
export function excessText(length: number): string {
  return `expected at most ${MAX_PARAMETERS_LENGTH} characters, got ${length}`;
}

type NamespaceMetadata = Pick<KubernetesObject['metadata'], 'labels' | 'annotations' | 'deletionTimestamp'>;

/**
 * The JSON of a namespace with its labels, whether it is being deleted, and those annotations that policies read as parameters.
 * @param keys of annotations: those that the namespace does not have are null, and too long ones are their length
 */
export function namespaceText(metadata: NamespaceMetadata, keys: readonly string[] = []): string {
  const { labels = {}, annotations = {}, deletionTimestamp } = metadata;
  const deletion = deletionTimestamp === undefined ? {} : { deletionTimestamp };
  if (keys.length === 0) {
    return JSON.stringify({ metadata: { labels, ...deletion } });
  }
  const values = keys.map((key) => [key, Object.hasOwn(annotations, key) ? annotation(annotations[key] ?? '') : null]);
  return JSON.stringify({ metadata: { labels, annotations: Object.fromEntries(values) as object, ...deletion } });
}

function annotation(value: string): string | number {
  return value.length > MAX_PARAMETERS_LENGTH ? value.length : value;
}
