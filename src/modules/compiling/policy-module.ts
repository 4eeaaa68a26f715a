import type { BuiltinName } from '../reference/builtin-module.ts';
import { compileModule } from '../../wasm/index.ts';
import type { CompiledModule, SandboxOptions } from '../../wasm/index.ts';
import { executionModeOf } from '../metadata/execution-mode.ts';
import type { ExecutionMode } from '../metadata/execution-mode.ts';
import { readMetadata, requireSupportedVersion } from '../metadata/metadata.ts';
import type { PolicyMetadata } from '../metadata/metadata.ts';

/** Default limit of a guest's memory: ten times what large policies (Go with Kubernetes types) use. Bytes. */
export const DEFAULT_MEMORY_LIMIT_BYTES = 128 * 1024 * 1024;

/** The code of a policy: a compiled module, a builtin policy, or Kubernetes' own policies for a minor version. */
export type PolicyCode =
  | { readonly mode: ExecutionMode; readonly compiled: CompiledModule }
  | { readonly mode: 'builtin'; readonly name: BuiltinName }
  | { readonly mode: 'manifests'; readonly manifests: readonly unknown[]; readonly kubernetesVersion?: number };

interface PolicyModuleOptions {
  /** Default: {@link DEFAULT_MEMORY_LIMIT_BYTES}. */
  readonly memoryLimitBytes?: number | undefined;
  /** The mode that the user chose, for modules without metadata. */
  readonly chosenMode?: ExecutionMode | undefined;
  /** Default: `restore`. */
  readonly isolation?: SandboxOptions['isolation'] | undefined;
}

interface PolicyModule {
  readonly compiled: CompiledModule;
  readonly mode: ExecutionMode;
  readonly metadata: PolicyMetadata | undefined;
}

/**
 * Compiles a module, by default for guests whose memory is restored after each call, which is faster than a new instance for modules
 * of every mode (ADR 0002).
 * @throws WasmError as compileModule
 */
export function compilePolicyModule(
  bytes: Uint8Array,
  {
    memoryLimitBytes = DEFAULT_MEMORY_LIMIT_BYTES,
    isolation = 'restore',
  }: Omit<PolicyModuleOptions, 'chosenMode'> = {},
): CompiledModule {
  return compileModule(bytes, { memoryLimitBytes, isolation });
}

/**
 * Reads the metadata, checks that the policy runs on this version, compiles the module and determines its mode. Does not
 * call {@link requireProtocol}: servers do, but authors may run a waPC module before they annotate it.
 * @throws ModuleError `metadata-invalid`, `version-unsupported`, `execution-mode-unclear`, `execution-mode-unsupported`;
 * WasmError as compileModule
 */
export function loadPolicyModule(bytes: Uint8Array, options: PolicyModuleOptions = {}): PolicyModule {
  const metadata = readMetadata(bytes);
  requireSupportedVersion(metadata);
  const compiled = compilePolicyModule(bytes, options);
  const mode = executionModeOf(compiled.shape, { metadata: metadata?.executionMode, chosen: options.chosenMode });
  return { compiled, mode, metadata };
}
