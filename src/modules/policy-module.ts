import type { BuiltinName } from './builtin-module.ts';
import { compileModule } from '../wasm/index.ts';
import type { CompiledModule } from '../wasm/index.ts';
import { executionModeOf } from './execution-mode.ts';
import type { ExecutionMode } from './execution-mode.ts';
import { readMetadata, requireSupportedVersion } from './metadata.ts';
import type { PolicyMetadata } from './metadata.ts';

/** A guest's memory unless told otherwise: ten times what large policies (Go with Kubernetes types) use. Bytes. */
export const DEFAULT_MEMORY_LIMIT_BYTES = 128 * 1024 * 1024;

/** Code that can be asked for verdicts: a compiled module, or a part of this product. */
export type PolicyCode =
  | { readonly mode: ExecutionMode; readonly compiled: CompiledModule }
  | { readonly mode: 'builtin'; readonly name: BuiltinName };

/** How to load a policy's module. */
interface PolicyModuleOptions {
  /** Default: {@link DEFAULT_MEMORY_LIMIT_BYTES}. */
  readonly memoryLimitBytes?: number | undefined;
  /** The kind that the user chose, for modules that do not say. */
  readonly chosenMode?: ExecutionMode | undefined;
}

/** A module that is ready to become a guest. */
interface PolicyModule {
  readonly compiled: CompiledModule;
  readonly mode: ExecutionMode;
  readonly metadata: PolicyMetadata | undefined;
}

/**
 * Compiles a module as policies run everywhere: put back between calls, which is the faster way for every kind of module,
 * commands included (ADR 0002).
 * @throws WasmError as compileModule
 */
export function compilePolicyModule(bytes: Uint8Array, memoryLimitBytes = DEFAULT_MEMORY_LIMIT_BYTES): CompiledModule {
  return compileModule(bytes, { memoryLimitBytes, isolation: 'restore' });
}

/**
 * Reads a module's metadata, checks that this version of the host is recent enough, compiles it and tells its kind.
 * Whether a waPC module states its protocol is left to the caller: servers insist, authors may try it first.
 * @throws ModuleError `metadata-invalid`, `version-unsupported`, `execution-mode-unclear`; WasmError as compileModule
 */
export function loadPolicyModule(bytes: Uint8Array, options: PolicyModuleOptions = {}): PolicyModule {
  const metadata = readMetadata(bytes);
  requireSupportedVersion(metadata);
  const compiled = compilePolicyModule(bytes, options.memoryLimitBytes);
  const mode = executionModeOf(compiled.shape, { metadata: metadata?.executionMode, chosen: options.chosenMode });
  return { compiled, mode, metadata };
}
