export { checkPodSecurity } from './admission.ts';
export { NEWEST_SAFE_SYSCTLS } from './checks/host.ts';
export { APPARMOR_ANNOTATION, SECCOMP_CONTAINER_ANNOTATION, SECCOMP_POD_ANNOTATION } from './checks/profiles.ts';
export { LEVELS } from './level.ts';
export type { Level, StandardsVersion } from './level.ts';
export { parsePodSecuritySettings } from './settings.ts';
export type { ParsedPodSecuritySettings } from './settings.ts';
export { describeViolations, MALFORMED, NEWEST_VERSION } from './standards.ts';
export type { StandardsViolation } from './standards.ts';
