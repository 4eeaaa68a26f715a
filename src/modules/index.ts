export { BUILTIN_MODULES, builtinVersion, isBuiltin, parseBuiltin, PRODUCT_VERSION } from './builtin-module.ts';
export type { BuiltinName } from './builtin-module.ts';
export { ModuleError } from './errors.ts';
export type { ModuleErrorCode } from './errors.ts';
export { EXECUTION_MODES, executionModeOf, moduleInterface } from './execution-mode.ts';
export type { ExecutionMode, ModuleInterface, StatedMode } from './execution-mode.ts';
export { readModuleFile } from './file-source.ts';
export { CONNECT_TIMEOUT_MS, FETCH_TIMEOUT_MS, IDLE_TIMEOUT_MS, MAX_REDIRECTS } from './http-source.ts';
export type { FetchTimeouts } from './http-source.ts';
export {
  METADATA_LIMIT_BYTES,
  METADATA_SECTION,
  parseMetadata,
  readMetadata,
  requireProtocol,
  requireSupportedVersion,
  SUPPORTED_KUBEWARDEN_VERSION,
  writeMetadata,
} from './metadata.ts';
export type { ContextAwareResource, PolicyMetadata } from './metadata.ts';
export { digestOf, ModuleCache } from './module-cache.ts';
export { isDigest, parseReference, redactUrl } from './module-reference.ts';
export type { Digest, FileReference, HttpReference, ModuleReference, ReferenceOptions } from './module-reference.ts';
export { DEFAULT_MAX_CACHE_BYTES, DEFAULT_MAX_MODULE_BYTES, ModuleStore } from './module-store.ts';
export type { FetchedModule, FetchOptions, ModuleStoreOptions } from './module-store.ts';
export {
  MAX_PEERS_ASKED,
  PEER_ANSWER_TIMEOUT_MS,
  PEER_IDLE_TIMEOUT_MS,
  PEER_TIMEOUT_MS,
  PEERS_AT_ONCE,
} from './peer-source.ts';
export type { PeerSource } from './peer-source.ts';
export { isInside, isOwnHost } from './own-network.ts';
export { compilePolicyModule, DEFAULT_MEMORY_LIMIT_BYTES, loadPolicyModule } from './policy-module.ts';
export type { PolicyCode, PolicyModule, PolicyModuleOptions } from './policy-module.ts';
export type { PolicyOperation, PolicyRule } from './policy-rule.ts';
export { DEFAULT_SOURCES, parseSources } from './sources.ts';
export type { ProxyConfig, SourceAuthority, SourcesConfig } from './sources.ts';
