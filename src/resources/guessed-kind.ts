// A guess for a kind that nobody has declared.
import { type JsonObject, own, textOf, valueAt } from '../values/index.ts';
import { groupVersionOf, type ResourceType } from './resource-type.ts';

/** The kind of an object by the rules for English plurals; in a namespace if it names one. */
export function guessedKind(object: JsonObject): ResourceType {
  const kind = textOf(own(object, 'kind'));
  const singular = kind.toLowerCase();
  const plural = /[^aeiou]y$/.test(singular)
    ? `${singular.slice(0, -1)}ies`
    : `${singular}${singular.endsWith('s') ? 'es' : 's'}`;
  const { group, version } = groupVersionOf(textOf(own(object, 'apiVersion')));
  const namespaced = valueAt(object, 'metadata', 'namespace') !== undefined;
  return { group, version, kind, resource: plural, namespaced };
}
