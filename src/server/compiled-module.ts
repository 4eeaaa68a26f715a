// A module as it travels from the loader to the evaluation workers.
import type { ExecutionMode } from '../modules/index.ts';
import type { CompiledModule } from '../wasm/index.ts';

/** A module that was fetched, verified, rewritten and compiled; can be posted to another thread without a recompile. */
export interface CompiledPolicyModule {
  /** `sha256:…` of the original bytes. */
  readonly digest: string;
  readonly mode: ExecutionMode;
  readonly compiled: CompiledModule;
}
