export type { LintFinding } from '../cel-policy/lints/lint-finding.ts';
export { lintManifest } from '../cel-policy/lints/lint-manifest.ts';
export { deniesAlways } from './denies-always.ts';
export { checkManifestTypes, checkPolicyTypes, describeTypeWarning } from './check-policy-types.ts';
export type { PolicyKinds, TypeCheck, TypeWarning } from './check-policy-types.ts';
export { offlineKinds } from './offline-kinds.ts';
