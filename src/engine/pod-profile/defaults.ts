import { asJson, objectIn } from '../../values/index.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { APPARMOR_ANNOTATION } from '../pod-security/index.ts';
import { defaultId } from './id-rule.ts';
import { isSet } from '../values/is-set.ts';
import { CONTAINER_LISTS, type ContainerList } from '../pods/pod.ts';
import type { ContainerSecurity, Pod, SharedSecurity } from '../pods/pod.ts';
import { fieldOfProfile, profileOfAnnotation } from './profile-rule.ts';
import type { PodProfileSettings } from './settings.ts';

/** A new pod with the defaults that it lacks; the same object when it lacks none. */
export function withDefaults(pod: Pod, settings: PodProfileSettings): JsonObject {
  const { defaultClass } = settings.runtimeClasses;
  const spec = withMembers(objectIn(pod.object, 'spec'), {
    runtimeClassName: isSet(pod.spec.runtimeClassName) ? undefined : defaultClass,
  });
  const withPod = withSecurity(spec, podDefaults(pod, settings));
  const defaultsOf = (security: ContainerSecurity): JsonObject => containerDefaults(security, settings);
  const lists = pod.isWindows ? [] : CONTAINER_LISTS;
  return withSpec(
    pod.object,
    lists.reduce((result, list) => withContainers(result, list, pod, defaultsOf), withPod),
  );
}

/**
 * A pod with the defaults of its new ephemeral containers, those whose name is not `known`. The rest of a
 * pod cannot be changed, so what other containers inherit is set here as well.
 */
export function withEphemeralDefaults(pod: Pod, known: ReadonlySet<string>, settings: PodProfileSettings): JsonObject {
  const defaultsOf = (security: ContainerSecurity, name: string): JsonObject => {
    if (known.has(name)) {
      return {};
    }
    const annotated = profileOfAnnotation(pod.annotation(APPARMOR_ANNOTATION + name));
    const { appArmorProfile, ...shared } = sharedDefaults(security, pod.security, pod.isWindows, settings);
    return {
      ...shared,
      ...(appArmorProfile === undefined || annotated !== undefined ? {} : { appArmorProfile }),
      ...(pod.isWindows ? {} : containerDefaults(security, settings)),
    };
  };
  return withSpec(pod.object, withContainers(objectIn(pod.object, 'spec'), 'ephemeralContainers', pod, defaultsOf));
}

function podDefaults({ security, isWindows }: Pod, settings: PodProfileSettings): JsonObject {
  const group = (security.supplementalGroups ?? []).length > 0 ? undefined : defaultId(settings.supplementalGroups);
  const groups: Members = {
    fsGroup: isSet(security.fsGroup) ? undefined : defaultId(settings.fsGroup),
    supplementalGroups: group === undefined ? undefined : [group],
  };
  return { ...sharedDefaults(security, {}, isWindows, settings), ...(isWindows ? {} : defined(groups)) };
}

/** Defaults of what containers inherit, unless `inherits` has them. */
function sharedDefaults(
  security: SharedSecurity,
  inherits: SharedSecurity,
  isWindows: boolean,
  { runAsUser, runAsGroup, seLinux, seccomp, appArmor }: PodProfileSettings,
): JsonObject {
  const has = (field: keyof SharedSecurity): boolean => isSet(security[field] ?? inherits[field]);
  const needsNonRoot = runAsUser.rule === 'MustRunAsNonRoot' && !has('runAsNonRoot');
  const nonRoot: Members = { runAsNonRoot: needsNonRoot && (isWindows || !has('runAsUser')) ? true : undefined };
  const ifMissing = (field: keyof SharedSecurity, value: JsonValue | undefined): Members => ({
    [field]: has(field) ? undefined : value,
  });
  const profile = (name: string | undefined): JsonObject | undefined =>
    name === undefined ? undefined : fieldOfProfile(name);
  return isWindows
    ? defined(nonRoot)
    : defined({
        ...ifMissing('runAsUser', defaultId(runAsUser)),
        ...ifMissing('runAsGroup', defaultId(runAsGroup)),
        ...nonRoot,
        ...ifMissing('seLinuxOptions', seLinux === undefined ? undefined : { ...seLinux }),
        ...ifMissing('seccompProfile', profile(seccomp.defaultProfile)),
        ...ifMissing('appArmorProfile', profile(appArmor.defaultProfile)),
      });
}

function containerDefaults(
  { allowPrivilegeEscalation, capabilities, privileged, readOnlyRootFilesystem }: ContainerSecurity,
  settings: PodProfileSettings,
): JsonObject {
  // API servers refuse a privileged container with allowPrivilegeEscalation: false.
  const escalation = privileged === true ? undefined : settings.defaultAllowPrivilegeEscalation;
  return defined({
    allowPrivilegeEscalation: isSet(allowPrivilegeEscalation) ? undefined : escalation,
    capabilities: capabilityDefaults(capabilities, settings),
    readOnlyRootFilesystem: settings.readOnlyRootFilesystem && !isSet(readOnlyRootFilesystem) ? true : undefined,
  });
}

function capabilityDefaults(
  capabilities: ContainerSecurity['capabilities'],
  { capabilities: { added, dropped } }: PodProfileSettings,
): JsonObject | undefined {
  const [add, drop] = [new Set(capabilities?.add), new Set(capabilities?.drop)];
  const missingAdd = added.filter((name) => !add.has(name) && !drop.has(name));
  const missingDrop = dropped.filter((name) => !drop.has(name));
  return missingAdd.length + missingDrop.length === 0
    ? undefined
    : withMembers(asJson(capabilities ?? {}), {
        add: missingAdd.length === 0 ? undefined : [...add, ...missingAdd],
        drop: missingDrop.length === 0 ? undefined : [...drop, ...missingDrop],
      });
}

/** The specification with the defaults of each container in a list. */
function withContainers(
  spec: JsonObject,
  list: ContainerList,
  pod: Pod,
  defaultsOf: (security: ContainerSecurity, name: string) => JsonObject,
): JsonObject {
  const containers = spec[list];
  if (!Array.isArray(containers)) {
    return spec;
  }
  const defaulted = containers.map((container, index) => {
    const { securityContext, name } = pod.spec[list]?.[index] ?? {};
    return isJsonObject(container) ? withSecurity(container, defaultsOf(securityContext ?? {}, name ?? '')) : container;
  });
  const isChanged = defaulted.some((container, index) => container !== containers[index]);
  return isChanged ? { ...spec, [list]: defaulted } : spec;
}

/** A pod's specification, or a container, with additional fields in its security context. */
function withSecurity(holder: JsonObject, additions: JsonObject): JsonObject {
  return Object.keys(additions).length === 0
    ? holder
    : { ...holder, securityContext: { ...objectIn(holder, 'securityContext'), ...additions } };
}

function withSpec(object: JsonObject, spec: JsonObject): JsonObject {
  return spec === object.spec ? object : { ...object, spec };
}

/** Members of an object; undefined ones are left out. */
type Members = Readonly<Record<string, JsonValue | undefined>>;

/** The object with additional members; the same object when all are undefined. */
function withMembers(object: JsonObject, members: Members): JsonObject {
  const additions = defined(members);
  return Object.keys(additions).length === 0 ? object : { ...object, ...additions };
}

function defined(members: Members): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(members)) {
    if (value !== undefined) {
      result[key] = value;
    }
  }
  return result;
}
