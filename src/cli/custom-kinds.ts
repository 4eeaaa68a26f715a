// Kinds that CustomResourceDefinitions among manifests define, and guesses for others.
import {
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  own,
  type ResourceType,
  textOf,
  valueAt,
} from '../resources/index.ts';

/** The kinds of a CustomResourceDefinition; none of another object. */
export function definedKinds(object: JsonObject): readonly ResourceType[] {
  const spec = own(object, 'spec');
  const names = valueAt(spec, 'names');
  const versions = valueAt(spec, 'versions');
  if (own(object, 'kind') !== 'CustomResourceDefinition' || !isJsonObject(spec) || !isJsonObject(names)) {
    return [];
  }
  return (Array.isArray(versions) ? versions.filter(isJsonObject) : []).map((version) => ({
    group: textOf(own(spec, 'group')),
    version: textOf(own(version, 'name')),
    kind: textOf(own(names, 'kind')),
    resource: textOf(own(names, 'plural')),
    namespaced: own(spec, 'scope') === 'Namespaced',
  }));
}

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
