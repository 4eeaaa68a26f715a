// An entry of its own for who only reads the choices of an administrator.
export { DEFAULT_GOVERNANCE_SETTINGS } from './governance-settings.ts';
export type { GovernanceMode, GovernanceSettings } from './governance-settings.ts';
