export {
  BUILTIN_MODULES,
  builtinVersion,
  isBuiltin,
  parseBuiltin,
  PRODUCT_VERSION,
} from './reference/builtin-module.ts';
export type { BuiltinName } from './reference/builtin-module.ts';
export { ModuleError } from './reference/errors.ts';
export { EXECUTION_MODES, executionModeOf, moduleInterface, requireSupportedMode } from './metadata/execution-mode.ts';
export type { ExecutionMode, ModuleInterface } from './metadata/execution-mode.ts';
export { readModuleFile } from './sources/file-source.ts';
export type { TransferOptions } from './http/http-transfer.ts';
export { FETCH_TIMEOUT_MS } from './http/time-limits.ts';
export {
  METADATA_SECTION,
  parseMetadata,
  readMetadata,
  requireProtocol,
  requireSupportedVersion,
  writeMetadata,
} from './metadata/metadata.ts';
export type { PolicyMetadata } from './metadata/metadata.ts';
export { digestOf, isDigest } from './reference/digest.ts';
export type { Digest } from './reference/digest.ts';
export { ModuleCopies } from './cache/module-copies.ts';
export type { ModuleCopy } from './cache/module-copies.ts';
export { ModuleCache } from './cache/module-cache.ts';
export type { CachedModule } from './cache/module-cache.ts';
export { ModulesInUse } from './cache/modules-in-use.ts';
export { PROVIDER_CATALOGUE } from './oci/artifact-content.ts';
export { saveBundle } from './oci/bundle.ts';
export type { SavedArtifact } from './oci/bundle.ts';
export { pushLayout } from './oci/push-layout.ts';
export { pushModule } from './oci/push.ts';
export type { PushOptions } from './oci/push.ts';
export { resolveDigest } from './oci/registry-source.ts';
export { hostPlatform, readImage, readImageConfig } from './oci/image.ts';
export { parseImage, parseReference, redactUrl, withDigest } from './reference/module-reference.ts';
export type { FileReference, ModuleReference, RegistryReference } from './reference/module-reference.ts';
export { ModuleStore } from './module-store.ts';
export type { FetchedModule } from './module-store.ts';
export type { PeerAddresses, PeerSource } from './peer-source.ts';
export { TaskLimit } from './cache/task-limit.ts';
export { assertTenantModule, tenantModuleProblem } from './sources/tenant-modules.ts';
export { assertTenantFile, assertTenantHost, anonymousSources } from './sources/tenant-sources.ts';
export { parseTrustRoot } from './sources/trust-root.ts';
export type { TrustRoot } from './sources/trust-root.ts';
export { verifyReference } from './verify-reference.ts';
export { verificationOf } from './sources/verification.ts';
export type { Verification } from './sources/verification.ts';
export {
  isGithubOwner,
  isGithubRepository,
  parsePublicKey,
  parseUrlPrefix,
  parseVerification,
} from './sources/verification-config.ts';
export type { SignatureRequirement, VerificationConfig } from './sources/verification-config.ts';
export type { PolicyCode } from './compiling/policy-module.ts';
export type { MetadataRule } from './metadata/policy-rule.ts';
