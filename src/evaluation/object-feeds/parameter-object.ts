// Objects with parameters, as workers get them.
import type { ObjectFailure } from '../watched-objects.ts';
import { excessText, type KubernetesObject, parametersText } from '../../resources/index.ts';

/** An object as its cache keeps it: its text, which takes less memory, or the length of a text that is too long. */
export type ObjectWithText = KubernetesObject & { readonly text?: string; readonly length?: number };

export function withText(object: KubernetesObject): ObjectWithText {
  return { ...identityOf(object), ...parametersText(object) };
}

/** What a cache needs of an object that no policy uses. */
export function identityOf({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } };
}

export function textIn({ text = '' }: ObjectWithText): string {
  return text;
}

/** Why workers do not get the object. */
export function failureOf({ length }: ObjectWithText): ObjectFailure | undefined {
  return length === undefined
    ? undefined
    : {
        state: 'unreadable',
        reason: `the object is too large: ${excessText(length)}`,
      };
}
