export { diagnose } from './findings/diagnose.ts';
export type { Finding, Severity } from './findings/finding.ts';
export { argumentOf } from './findings/controller-arguments.ts';
export { takeSnapshot } from './findings/snapshot.ts';
export { INSTALL_PARTS, chosenParts, installObjects } from './install-objects.ts';
export type { InstallPart } from './install-objects.ts';
export { deploymentProgress, policyServerProgress } from './installed-state.ts';
export type { Progressing } from './installed-state.ts';
export {
  ACCESS_GUARDS,
  CLUSTER_BINDINGS,
  CLUSTER_ROLES,
  CRDS,
  DEPLOYMENTS,
  NAMESPACES,
  OWNED_KINDS,
  PODS,
  ROLE_BINDINGS,
  WEBHOOK_CONFIGURATIONS,
} from './kinds.ts';
export { kubewardenControllers } from './kubewarden.ts';
export { controllerDeployment } from './objects/controller-objects.ts';
export { isSection, valuesDeclaration } from './objects/install-values.ts';
export type { InstallValues, ValueDeclaration, ValueSection } from './objects/install-values.ts';
export { AUDITOR, CONTROLLER, PRODUCT_LABELS, isInstalledObject } from './objects/naming.ts';
export type { InstallContext } from './objects/naming.ts';
export { isForeignGovernanceKind, takeOverHint } from './open-cluster-management.ts';
export { configurationName, isOurConfiguration } from './our-configurations.ts';
export { defaultValues, installValues, ValuesError, valuesMapping } from './read-values.ts';
export { isTooOld, MIN_KUBERNETES, minorVersion } from './requirements.ts';
export { lackingRights, rightTexts } from './rights/account-rights.ts';
export { kindText, resolveRights } from './rights/resolve-rights.ts';
export type { KindFinder } from './rights/resolve-rights.ts';
export { missingRights, rightText, rightsTo } from './rights/rights.ts';
export type { Right } from './rights/rights.ts';
