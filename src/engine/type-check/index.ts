export { checkManifestTypes, checkPolicyTypes, describeTypeWarning } from './check-policy-types.ts';
export type { PolicyKinds, TypeCheck, TypeWarning } from './check-policy-types.ts';
export { offlineKinds } from './offline-kinds.ts';
export { subjectOfDefinition, subjectOfSpec } from './type-check-subject.ts';
