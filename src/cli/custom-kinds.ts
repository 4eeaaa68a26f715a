// Kinds that CustomResourceDefinitions among manifests define, and guesses for others.
import type { KindSchema } from '../engine/index.ts';
import {
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  own,
  type ResourceType,
  textOf,
  valueAt,
  withObjectMeta,
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

/** The kinds of CustomResourceDefinitions with their schemas. Versions without one are left out. */
export function definedSchemas(objects: readonly JsonObject[]): readonly KindSchema[] {
  return objects.flatMap((object) => {
    const versions = valueAt(object, 'spec', 'versions');
    return definedKinds(object).flatMap((kind) => {
      const declared = (Array.isArray(versions) ? versions : []).find((one) => valueAt(one, 'name') === kind.version);
      const schema = valueAt(declared, 'schema', 'openAPIV3Schema');
      return isJsonObject(schema) ? [{ ...kind, node: withObjectMeta(schema) }] : [];
    });
  });
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
