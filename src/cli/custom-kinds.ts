// Kinds that CustomResourceDefinitions among manifests define.
import type { KindSchema } from '../engine/index.ts';
import {
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
