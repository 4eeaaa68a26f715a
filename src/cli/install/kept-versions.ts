import { isJsonObject, type JsonObject, type JsonValue, type KubernetesObject } from '../../resources/index.ts';

/**
 * Our CustomResourceDefinition with the versions that only the existing one has, such as Kubewarden's older ones. Objects that
 * are stored in them stay readable, and clients can still request them.
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
