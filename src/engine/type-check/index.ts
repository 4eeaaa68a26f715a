export { checkManifestTypes, checkPolicyTypes, describeTypeWarning, MAX_TYPE_WARNINGS } from './check-policy-types.ts';
export type { CheckedUse, PolicyKinds, TypeCheck, TypeCheckSubject, TypeWarning } from './check-policy-types.ts';
export { offlineKinds } from './offline-kinds.ts';
export { subjectOfDefinition, subjectOfSpec } from './type-check-subject.ts';
