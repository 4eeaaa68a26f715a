import { isJsonObject, type JsonObject, type JsonValue, type KubernetesObject } from '../../resources/index.ts';

/**
 * A definition of ours with those versions of the one that is there which ours does not have: Kubewarden's has older ones.
 * What is stored in one, or asked for in it, stays readable; ours is the one that is stored from now on.
 */
export function withOtherVersions(wanted: KubernetesObject, live: KubernetesObject): KubernetesObject {
  const ours = versionsOf(wanted);
  const names = new Set(ours.map(({ name }) => name));
  const others = versionsOf(live)
    .filter(({ name }) => !names.has(name))
    .map((version) => ({ ...version, storage: false }));
  return others.length === 0
    ? wanted
    : { ...wanted, spec: { ...(wanted['spec'] as JsonObject), versions: [...ours, ...others] } };
}

function versionsOf({ spec }: KubernetesObject): readonly JsonObject[] {
  const versions: JsonValue = isJsonObject(spec) ? (spec['versions'] ?? null) : null;
  return Array.isArray(versions) ? versions.filter(isJsonObject) : [];
}
