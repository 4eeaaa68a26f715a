export { createGuest } from './guest.ts';
export type { GuestVerdict, SettingsVerdict } from './guest-verdict.ts';
export { createManifestsGuest } from './kubernetes-policy-guest.ts';
export type { PolicyGuest } from './policy-guest.ts';
