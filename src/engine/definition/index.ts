// Policies as data, and the limits of reviews. An entry of its own: it loads nothing that evaluates.
export {
  DEFAULT_CAPABILITY_TIMEOUT_MS,
  DEFAULT_TIMEOUT_SECONDS,
  MAX_MONITORED_MESSAGE,
  MAX_MONITORED_NAME,
  MAX_MONITORED_USER,
  MAX_REVIEW_BYTES,
} from './limits.ts';
export { monitoredLogEntry } from '../monitored-log-entry.ts';
export { OTHER_NAME } from '../verdict/observation.ts';
export { definitionHash, modulesOf, moduleUses } from './policy-definition.ts';
export { policyEntry } from './policy-entry.ts';
export { isNamespaceOwner, policyOwner } from './policy-owner.ts';
