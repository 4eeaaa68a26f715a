import { describeValue } from '../values/field-reader.ts';
import { SECCOMP_POD_ANNOTATION } from '../pod-security/index.ts';
import { checkContainer } from './check-container.ts';
import { checkShared } from './check-shared.ts';
import { checkVolumes } from './check-volumes.ts';
import { idProblem } from './id-rule.ts';
import type { Pod } from '../pods/pod.ts';
import { profileOfAnnotation, profileProblem } from './profile-rule.ts';
import type { PodProfileSettings } from './settings.ts';
import { sysctlProblem } from './sysctl-rule.ts';
import { Violations } from './violations.ts';
import type { ProfileViolation } from './violations.ts';

const PATH = 'spec.securityContext';

/** All violations: of the pod, its volumes, then its containers in the order of their lists. */
export function violationsOf(pod: Pod, settings: PodProfileSettings): readonly ProfileViolation[] {
  const violations = new Violations();
  checkHostNamespaces(pod, settings, violations);
  checkRuntimeClass(pod, settings, violations);
  checkShared({ security: pod.security, path: PATH }, pod, settings, violations);
  if (!pod.isWindows) {
    checkGroups(pod, settings, violations);
    checkSysctls(pod, settings, violations);
    checkAnnotation(pod, settings, violations);
  }
  const mounts = checkVolumes(pod, settings.volumes, violations);
  for (const container of pod.containers) {
    checkContainer(pod, container, mounts, settings, violations);
  }
  return violations.all;
}

function checkHostNamespaces({ spec }: Pod, settings: PodProfileSettings, violations: Violations): void {
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC'] as const) {
    if (!settings[field] && spec[field] === true) {
      violations.add(`spec.${field}`, 'expected false, got true');
    }
  }
}

function checkRuntimeClass(
  { spec }: Pod,
  { runtimeClasses: { allowed } }: PodProfileSettings,
  violations: Violations,
): void {
  const name = spec.runtimeClassName ?? undefined;
  if (name !== undefined && allowed !== undefined && !allowed.has(name)) {
    violations.add('spec.runtimeClassName', `expected an allowed class, got ${describeValue(name)}`);
  }
}

function checkGroups({ security }: Pod, settings: PodProfileSettings, violations: Violations): void {
  violations.add(`${PATH}.fsGroup`, idProblem(settings.fsGroup, security.fsGroup ?? undefined));
  const groups = security.supplementalGroups ?? [];
  if (groups.length === 0) {
    violations.add(`${PATH}.supplementalGroups`, idProblem(settings.supplementalGroups, undefined));
  }
  for (const [index, group] of groups.entries()) {
    violations.add(`${PATH}.supplementalGroups[${index}]`, idProblem(settings.supplementalGroups, group));
  }
}

function checkSysctls({ security }: Pod, { sysctls }: PodProfileSettings, violations: Violations): void {
  for (const [index, { name }] of (security.sysctls ?? []).entries()) {
    violations.add(`${PATH}.sysctls[${index}].name`, sysctlProblem(sysctls, name ?? ''));
  }
}

function checkAnnotation(pod: Pod, { seccomp }: PodProfileSettings, violations: Violations): void {
  const profile = profileOfAnnotation(pod.annotation(SECCOMP_POD_ANNOTATION));
  if (profile !== undefined) {
    violations.add(`metadata.annotations[${SECCOMP_POD_ANNOTATION}]`, profileProblem(seccomp, profile));
  }
}
