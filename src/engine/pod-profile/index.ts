export { applyPodProfile } from './admission.ts';
export { parsePodProfileSettings } from './settings.ts';
export type { ParsedPodProfileSettings } from './settings.ts';
