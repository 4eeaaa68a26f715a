export { checkPodSecurity } from './admission.ts';
export { LEVELS } from './level.ts';
export type { Level, PolicyVersion } from './level.ts';
export { parsePodSecuritySettings } from './settings.ts';
export type { ParsedPodSecuritySettings } from './settings.ts';
export { describeViolations, evaluatePodSecurity, MALFORMED, NEWEST_VERSION } from './standards.ts';
export type { Violation } from './standards.ts';
