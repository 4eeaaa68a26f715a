import { describeValue } from '../values/field-reader.ts';
import { APPARMOR_ANNOTATION, SECCOMP_CONTAINER_ANNOTATION } from '../pod-security/index.ts';
import { checkShared } from './check-shared.ts';
import { goesUp } from './host-path.ts';
import { isWithin, rangesText } from './number-range.ts';
import type { Container, Pod } from '../pods/pod.ts';
import { profileOfAnnotation, profileProblem } from './profile-rule.ts';
import type { PodProfileSettings } from './settings.ts';
import type { Violations } from './violations.ts';

/** Volumes of a pod, by name, whose mounts are restricted. */
export interface MountRules {
  /** Containers may only read them. */
  readonly readOnly: ReadonlySet<string>;
  /** Volumes with a path of the node: the path inside may not leave it. */
  readonly hostPath: ReadonlySet<string>;
}

/** Checks what only containers have, and what they set of what the pod can set for them. */
export function checkContainer(
  pod: Pod,
  container: Container,
  mounts: MountRules,
  settings: PodProfileSettings,
  violations: Violations,
): void {
  const path = `${container.path}.securityContext`;
  const annotated = profileOfAnnotation(pod.annotation(APPARMOR_ANNOTATION + container.name));
  checkShared({ security: container.security, path, inherits: pod.security, annotated }, pod, settings, violations);
  if (!pod.isWindows) {
    checkLinux(container, path, settings, violations);
    checkAnnotations(pod, container, settings, violations);
  }
  checkPorts(container, settings, violations);
  checkMounts(pod, container, mounts, violations);
}

function checkLinux({ security }: Container, path: string, settings: PodProfileSettings, violations: Violations): void {
  if (!settings.privileged && security.privileged === true) {
    violations.add(`${path}.privileged`, 'expected false, got true');
  }
  if (!settings.allowPrivilegeEscalation && security.allowPrivilegeEscalation !== false) {
    const got = describeValue(security.allowPrivilegeEscalation);
    violations.add(`${path}.allowPrivilegeEscalation`, `expected false, got ${got}`);
  }
  if (settings.readOnlyRootFilesystem && security.readOnlyRootFilesystem !== true) {
    const got = describeValue(security.readOnlyRootFilesystem);
    violations.add(`${path}.readOnlyRootFilesystem`, `expected true, got ${got}`);
  }
  const procMount = security.procMount ?? 'Default';
  if (!settings.procMountTypes.has(procMount)) {
    const expected = [...settings.procMountTypes].join(' or ');
    violations.add(`${path}.procMount`, `expected ${expected}, got ${describeValue(procMount)}`);
  }
  checkCapabilities(security.capabilities, `${path}.capabilities`, settings, violations);
}

function checkCapabilities(
  capabilities: Container['security']['capabilities'],
  path: string,
  { capabilities: { allowed, dropped } }: PodProfileSettings,
  violations: Violations,
): void {
  for (const [index, name] of (capabilities?.add ?? []).entries()) {
    if (allowed !== undefined && !allowed.has(name)) {
      violations.add(`${path}.add[${index}]`, `expected an allowed capability, got ${describeValue(name)}`);
    }
  }
  const drop = new Set(capabilities?.drop);
  for (const name of dropped.filter((one) => !drop.has(one))) {
    violations.add(`${path}.drop`, `expected ${name} among the dropped capabilities`);
  }
}

/** Annotations count beside fields: API servers before 1.27 copy those of seccomp to fields, all copy those of AppArmor. */
function checkAnnotations(
  pod: Pod,
  { name }: Container,
  { seccomp, appArmor }: PodProfileSettings,
  violations: Violations,
): void {
  for (const [prefix, rule] of [
    [SECCOMP_CONTAINER_ANNOTATION, seccomp],
    [APPARMOR_ANNOTATION, appArmor],
  ] as const) {
    const profile = profileOfAnnotation(pod.annotation(prefix + name));
    if (profile !== undefined) {
      violations.add(`metadata.annotations[${prefix}${name}]`, profileProblem(rule, profile));
    }
  }
}

function checkPorts({ spec, path }: Container, { hostPorts }: PodProfileSettings, violations: Violations): void {
  for (const [index, { hostPort }] of (spec.ports ?? []).entries()) {
    const port = hostPort ?? 0;
    if (port !== 0 && !isWithin(hostPorts, port)) {
      const expected = hostPorts.length === 0 ? 'no port of the node' : rangesText(hostPorts);
      violations.add(`${path}.ports[${index}].hostPort`, `expected ${expected}, got ${port}`);
    }
  }
}

function checkMounts(pod: Pod, { spec, path }: Container, mounts: MountRules, violations: Violations): void {
  for (const [index, mount] of (spec.volumeMounts ?? []).entries()) {
    const name = mount.name ?? '';
    const at = `${path}.volumeMounts[${index}]`;
    if (mounts.readOnly.has(name) && mount.readOnly !== true) {
      violations.add(`${at}.readOnly`, `expected true, got ${describeValue(mount.readOnly)}`);
    }
    for (const field of ['subPath', 'subPathExpr'] as const) {
      if (mounts.hostPath.has(name) && goesUp(mount[field] ?? '', pod.isWindows)) {
        violations.add(`${at}.${field}`, `expected a path without "..", got ${describeValue(mount[field])}`);
      }
    }
  }
}
