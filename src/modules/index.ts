export { BUILTIN_MODULES, builtinVersion, isBuiltin, parseBuiltin, PRODUCT_VERSION } from './builtin-module.ts';
export type { BuiltinName } from './builtin-module.ts';
export { ModuleError } from './errors.ts';
export { EXECUTION_MODES, executionModeOf, moduleInterface, requireSupportedMode } from './execution-mode.ts';
export type { ExecutionMode, ModuleInterface } from './execution-mode.ts';
export { readModuleFile } from './file-source.ts';
export type { TransferOptions } from './http/http-transfer.ts';
export { FETCH_TIMEOUT_MS } from './http/time-limits.ts';
export {
  METADATA_SECTION,
  parseMetadata,
  readMetadata,
  requireProtocol,
  requireSupportedVersion,
  writeMetadata,
} from './metadata.ts';
export type { ContextAwareResource, PolicyMetadata } from './metadata.ts';
export { digestOf, isDigest } from './digest.ts';
export type { Digest } from './digest.ts';
export { ModuleCopies } from './module-copies.ts';
export type { ModuleCopy } from './module-copies.ts';
export { ModuleCache } from './module-cache.ts';
export type { CachedModule } from './module-cache.ts';
export { ModulesInUse } from './modules-in-use.ts';
export { PROVIDER_CATALOGUE } from './oci/artifact-content.ts';
export { saveBundle } from './oci/bundle.ts';
export type { SavedArtifact } from './oci/bundle.ts';
export { pushLayout } from './oci/push-layout.ts';
export { pushModule } from './oci/push.ts';
export type { PushOptions } from './oci/push.ts';
export { resolveDigest } from './oci/registry-source.ts';
export { hostPlatform, readImage, readImageConfig } from './oci/image.ts';
export { parseImage, parseReference, redactUrl, withDigest } from './module-reference.ts';
export type { FileReference, ModuleReference, RegistryReference } from './module-reference.ts';
export { DEFAULT_MAX_MODULE_BYTES, LARGEST_MODULE_BYTES, ModuleStore } from './module-store.ts';
export type { FetchedModule } from './module-store.ts';
export type { PeerAddresses, PeerSource } from './peer-source.ts';
export { TaskLimit } from './task-limit.ts';
export { ALL_MODULES, assertTenantModule, tenantModuleProblem } from './tenant-modules.ts';
export { assertTenantFile, assertTenantHost, anonymousSources } from './tenant-sources.ts';
export { parseTrustRoot } from './trust-root.ts';
export type { TrustRoot } from './trust-root.ts';
export { verifyReference } from './verify-reference.ts';
export { verificationOf } from './verification.ts';
export type { Verification } from './verification.ts';
export {
  isGithubOwner,
  isGithubRepository,
  parsePublicKey,
  parseUrlPrefix,
  parseVerification,
} from './verification-config.ts';
export type { SignatureRequirement, VerificationConfig } from './verification-config.ts';
export type { PolicyCode } from './compiling/policy-module.ts';
export type { PolicyRule } from './policy-rule.ts';
export { DEFAULT_SOURCES, parseSources } from './sources.ts';
export type { SourcesConfig } from './sources.ts';
