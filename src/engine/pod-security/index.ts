export { checkPodSecurity } from './admission.ts';
export type { PodSecurityVerdict } from './admission.ts';
export { isLevel, isPolicyVersion, LEVELS } from './level.ts';
export type { Level, LevelVersion, PolicyVersion } from './level.ts';
export { parsePodSecuritySettings } from './settings.ts';
export type { ParsedPodSecuritySettings, PodSecuritySettings } from './settings.ts';
export { describeViolations, evaluatePodSecurity, MALFORMED, NEWEST_VERSION } from './standards.ts';
export type { Violation } from './standards.ts';
