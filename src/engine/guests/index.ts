export { createGuest } from './guest.ts';
export { createManifestsGuest, manifestProblems } from './kubernetes-policy-guest.ts';
export { settingsMatch } from './settings-match.ts';
export type { PolicyGuest } from './policy-guest.ts';
