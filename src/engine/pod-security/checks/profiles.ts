import { quote } from '../../../go/index.ts';
import { isSet } from '../../values/is-set.ts';
import type { PodSecurityCheck, PodSecurityFinding, CheckPod } from './check.ts';
import { unlessUserNamespace, unlessWindows } from './check.ts';
import type { Holder, Pod, SharedSecurity } from '../../pods/pod.ts';
import { containerNames, fieldsOf, namedContainers, plural, quoted, settersOf, sortedSet } from './wording.ts';

const SELINUX_TYPES = ['', 'container_t', 'container_init_t', 'container_kvm_t'];

/** Checks of a container's confinement by the kernel: AppArmor, SELinux, seccomp, masked /proc paths. */
export const PROFILE_CHECKS: readonly PodSecurityCheck[] = [
  { id: 'appArmorProfile', level: 'baseline', revisions: [{ since: 0, check: appArmorProfile }] },
  {
    id: 'procMount',
    level: 'baseline',
    revisions: [
      { since: 0, check: procMount },
      { since: 35, check: unlessUserNamespace(procMount) },
    ],
  },
  // At the level restricted, the baseline check of versions before 1.35 still applies.
  {
    id: 'procMount_restricted',
    level: 'restricted',
    revisions: [{ since: 35, check: procMount, overrides: ['procMount'] }],
  },
  {
    id: 'seLinuxOptions',
    level: 'baseline',
    revisions: [
      { since: 0, check: seLinuxOptions(SELINUX_TYPES) },
      { since: 31, check: seLinuxOptions([...SELINUX_TYPES, 'container_engine_t']) },
    ],
  },
  {
    id: 'seccompProfile_baseline',
    level: 'baseline',
    revisions: [
      { since: 0, check: seccompAnnotations },
      { since: 19, check: forbiddenSeccomp },
    ],
  },
  {
    id: 'seccompProfile_restricted',
    level: 'restricted',
    revisions: [
      { since: 19, check: requiredSeccomp, overrides: ['seccompProfile_baseline'] },
      { since: 25, check: unlessWindows(requiredSeccomp), overrides: ['seccompProfile_baseline'] },
    ],
  },
];

/** Annotations of pods for profiles; those of containers end with the name of the container. */
export const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';
export const SECCOMP_POD_ANNOTATION = 'seccomp.security.alpha.kubernetes.io/pod';
export const SECCOMP_CONTAINER_ANNOTATION = 'container.seccomp.security.alpha.kubernetes.io/';

/** Profiles of the runtime, and local profiles of the node's administrator. */
function isSafeType(type: string): boolean {
  return type === 'RuntimeDefault' || type === 'Localhost';
}

/** Holders whose profile has a type that is not safe, and these types. */
function unsafeProfiles(
  holders: readonly Holder[],
  profile: 'appArmorProfile' | 'seccompProfile',
): { readonly bad: readonly Holder[]; readonly types: readonly string[] } {
  const typeOf = ({ security }: Holder): string | undefined => {
    const found = security[profile];
    return found === null || found === undefined ? undefined : (found.type ?? '');
  };
  const bad = holders.filter((holder) => {
    const type = typeOf(holder);
    return type !== undefined && !isSafeType(type);
  });
  return { bad, types: sortedSet(bad.map((holder) => typeOf(holder) ?? '')) };
}

function appArmorProfile({ holders, annotations, metadataPath }: Pod): PodSecurityFinding | undefined {
  const { bad, types } = unsafeProfiles(holders, 'appArmorProfile');
  const keys = Object.keys(annotations).filter(
    (key) => key.startsWith(APPARMOR_ANNOTATION) && !isSafeAppArmorAnnotation(annotations[key] ?? ''),
  );
  if (bad.length === 0 && keys.length === 0) {
    return undefined;
  }
  const forbidden = sortedSet(keys.map((key) => `${key}=${quote(annotations[key] ?? '')}`));
  const values = [...types, ...forbidden];
  const setters = settersOf(bad, keys.length > 0 ? [plural(keys, 'annotation', 'annotations')] : []);
  return {
    reason: plural(values, 'forbidden AppArmor profile', 'forbidden AppArmor profiles'),
    detail: `${setters} must not set AppArmor profile type to ${quoted(values)}`,
    containers: containerNames(bad),
    fields: [
      ...fieldsOf(bad, 'securityContext.appArmorProfile.type'),
      ...keys.map((key) => `${metadataPath}.annotations[${key}]`),
    ],
  };
}

function isSafeAppArmorAnnotation(value: string): boolean {
  return value === '' || value === 'runtime/default' || value.startsWith('localhost/');
}

function procMount({ containers }: Pod): PodSecurityFinding | undefined {
  const bad = containers.filter(({ security }) => (security.procMount ?? 'Default') !== 'Default');
  if (bad.length === 0) {
    return undefined;
  }
  const names = containerNames(bad);
  const types = sortedSet(bad.map(({ security }) => security.procMount ?? ''));
  return {
    reason: 'procMount',
    detail: `${namedContainers(names)} must not set securityContext.procMount to ${quoted(types)}`,
    containers: names,
    fields: fieldsOf(bad, 'securityContext.procMount'),
  };
}

function seLinuxOptions(allowed: readonly string[]): CheckPod {
  const allowedTypes = new Set(allowed);
  /** Forbidden options of a holder, by name. */
  const forbidden = ({ security }: Holder): ('type' | 'user' | 'role')[] => {
    const options = security.seLinuxOptions;
    return [
      ...(allowedTypes.has(options?.type ?? '') ? [] : (['type'] as const)),
      ...(['user', 'role'] as const).filter((option) => (options?.[option] ?? '') !== ''),
    ];
  };
  return ({ holders }) => {
    const bad = holders.filter((holder) => isSet(holder.security.seLinuxOptions) && forbidden(holder).length > 0);
    if (bad.length === 0) {
      return undefined;
    }
    const types = sortedSet(
      bad.map(({ security }) => security.seLinuxOptions?.type ?? '').filter((type) => !allowedTypes.has(type)),
    );
    const isGiven = (option: 'user' | 'role'): boolean => bad.some((holder) => forbidden(holder).includes(option));
    const problems = [
      ...(types.length > 0 ? [`${plural(types, 'type', 'types')} ${quoted(types)}`] : []),
      ...(['user', 'role'] as const).filter(isGiven).map((option) => `${option} may not be set`),
    ];
    return {
      reason: 'seLinuxOptions',
      detail: `${settersOf(bad)} set forbidden securityContext.seLinuxOptions: ${problems.join('; ')}`,
      containers: containerNames(bad),
      fields: bad.flatMap((holder) =>
        forbidden(holder).map((option) => `${holder.path}.securityContext.seLinuxOptions.${option}`),
      ),
    };
  };
}

/** Before 1.19, seccomp profiles were annotations. */
function seccompAnnotations({ annotations, containers, metadataPath }: Pod): PodSecurityFinding | undefined {
  const isForbidden = (key: string): boolean =>
    Object.hasOwn(annotations, key) && !isSafeSeccompAnnotation(annotations[key] ?? '');
  const bad = containers.filter(({ name }) => isForbidden(`${SECCOMP_CONTAINER_ANNOTATION}${name}`));
  const names = containerNames(bad);
  const keys = sortedSet([
    ...(isForbidden(SECCOMP_POD_ANNOTATION) ? [SECCOMP_POD_ANNOTATION] : []),
    ...names.map((name) => `${SECCOMP_CONTAINER_ANNOTATION}${name}`),
  ]);
  if (keys.length === 0) {
    return undefined;
  }
  const values = sortedSet(keys.map((key) => `${key}=${quote(annotations[key] ?? '')}`));
  return {
    reason: 'seccompProfile',
    detail: `forbidden ${plural(values, 'annotation', 'annotations')} ${values.join(', ')}`,
    containers: names,
    fields: keys.map((key) => `${metadataPath}.annotations[${key}]`),
  };
}

function isSafeSeccompAnnotation(value: string): boolean {
  return value === 'runtime/default' || value === 'docker/default' || value.startsWith('localhost/');
}

function forbiddenSeccomp({ holders }: Pod): PodSecurityFinding | undefined {
  const { bad, types } = unsafeProfiles(holders, 'seccompProfile');
  return bad.length === 0
    ? undefined
    : {
        reason: 'seccompProfile',
        detail: `${settersOf(bad)} must not set securityContext.seccompProfile.type to ${quoted(types)}`,
        containers: containerNames(bad),
        fields: fieldsOf(bad, 'securityContext.seccompProfile.type'),
      };
}

function requiredSeccomp(pod: Pod): PodSecurityFinding | undefined {
  return forbiddenSeccomp(pod) ?? missingSeccomp(pod);
}

function missingSeccomp({ containers, security: podSecurity }: Pod): PodSecurityFinding | undefined {
  const hasProfile = (security: SharedSecurity): boolean => isSet(security.seccompProfile);
  if (hasProfile(podSecurity)) {
    return undefined;
  }
  const bad = containers.filter(({ security }) => !hasProfile(security));
  if (bad.length === 0) {
    return undefined;
  }
  const names = containerNames(bad);
  return {
    reason: 'seccompProfile',
    detail: `pod or ${namedContainers(names)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
    containers: names,
    fields: fieldsOf(bad, 'securityContext.seccompProfile.type'),
  };
}
