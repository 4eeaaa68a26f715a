import { describeValue } from '../values/field-reader.ts';
import { isSet } from '../values/is-set.ts';
import { idProblem } from './id-rule.ts';
import type { Pod, SharedSecurity } from '../pods/pod.ts';
import { profileOfField, profileProblem } from './profile-rule.ts';
import { selinuxProblem } from './selinux-rule.ts';
import type { PodProfileSettings } from './settings.ts';
import type { Violations } from './violations.ts';

/** A security context of a pod, or of a container. */
export interface SecurityHolder {
  readonly security: SharedSecurity;
  /** Path of the security context. */
  readonly path: string;
  /** That of the pod, for a container. */
  readonly inherits?: SharedSecurity;
  /** The AppArmor profile of the container's annotation. */
  readonly annotated?: string | undefined;
}

/**
 * Checks what pods set for their containers. What a pod sets is checked at the pod; what a container sets, or neither
 * of them, at the container.
 */
export function checkShared(
  holder: SecurityHolder,
  { isWindows }: Pod,
  settings: PodProfileSettings,
  violations: Violations,
): void {
  if (!isWindows) {
    checkIds(holder, settings, violations);
  }
  checkNonRoot(holder, isWindows, settings, violations);
  if (!isWindows) {
    checkSelinux(holder, settings, violations);
    checkProfiles(holder, settings, violations);
  }
  if (!settings.privileged && holder.security.windowsOptions?.hostProcess === true) {
    violations.add(`${holder.path}.windowsOptions.hostProcess`, 'expected false, got true');
  }
}

/** Whether the field is to be checked here, with the value that is set or with none. */
function isOwn({ security, inherits }: SecurityHolder, field: keyof SharedSecurity): boolean {
  return isSet(security[field]) || (inherits !== undefined && !isSet(inherits[field]));
}

function checkIds(holder: SecurityHolder, settings: PodProfileSettings, violations: Violations): void {
  for (const field of ['runAsUser', 'runAsGroup'] as const) {
    if (isOwn(holder, field)) {
      violations.add(`${holder.path}.${field}`, idProblem(settings[field], holder.security[field] ?? undefined));
    }
  }
}

/** A user in the specification makes `runAsNonRoot` superfluous; on Windows users have names. */
function checkNonRoot(
  holder: SecurityHolder,
  isWindows: boolean,
  { runAsUser: { rule } }: PodProfileSettings,
  violations: Violations,
): void {
  if (rule !== 'MustRunAsNonRoot' || !isOwn(holder, 'runAsNonRoot')) {
    return;
  }
  const { runAsNonRoot, runAsUser } = holder.security;
  const hasUser = !isWindows && isSet(runAsUser ?? holder.inherits?.runAsUser);
  if (runAsNonRoot !== true && (isSet(runAsNonRoot) || !hasUser)) {
    violations.add(`${holder.path}.runAsNonRoot`, `expected true, got ${describeValue(runAsNonRoot)}`);
  }
}

function checkSelinux(holder: SecurityHolder, { seLinux }: PodProfileSettings, violations: Violations): void {
  if (!isOwn(holder, 'seLinuxOptions')) {
    return;
  }
  const found = selinuxProblem(seLinux, holder.security.seLinuxOptions ?? undefined);
  const part = found?.part === undefined ? '' : `.${found.part}`;
  violations.add(`${holder.path}.seLinuxOptions${part}`, found?.problem);
}

function checkProfiles(holder: SecurityHolder, settings: PodProfileSettings, violations: Violations): void {
  const { seccompProfile, appArmorProfile } = holder.security;
  if (isOwn(holder, 'seccompProfile')) {
    const profile = isSet(seccompProfile) ? profileOfField(seccompProfile ?? {}) : undefined;
    violations.add(`${holder.path}.seccompProfile`, profileProblem(settings.seccomp, profile));
  }
  if (isOwn(holder, 'appArmorProfile') && (isSet(appArmorProfile) || holder.annotated === undefined)) {
    const profile = isSet(appArmorProfile) ? profileOfField(appArmorProfile ?? {}) : undefined;
    violations.add(`${holder.path}.appArmorProfile`, profileProblem(settings.appArmor, profile));
  }
}
