// An entry of its own for controllers, which run no auditor.
export { AuditorPresence } from './auditor-presence.ts';
export { UnauditedPolicies } from './unaudited-policies.ts';
