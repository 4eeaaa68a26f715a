// An entry of its own: the cluster of `start` has these objects, too, and needs no more of an installation.
export { accessGuard } from './access-guard.ts';
export { AUDITED_KINDS } from './auditor-objects.ts';
export { PASSED_ON, userRoles } from './access-objects.ts';
export { annotationGuard } from './annotation-access.ts';
export { withoutComments } from './comments.ts';
export { GOVERNANCE_BINDINGS, GOVERNANCE_ROLES, governanceAccess, governanceBindings } from './governance-objects.ts';
export { exceptionStatusGuard } from './exception-guards.ts';
export { recordGuards } from './record-guards.ts';
