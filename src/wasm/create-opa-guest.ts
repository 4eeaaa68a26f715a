import { createRequire } from 'node:module';
import type { CompiledModule } from './compile.ts';
import type * as opa from './opa.ts';

/**
 * A guest for a Rego module, with OPA's builtins.
 * @throws WasmError as the constructor of OpaGuest
 */
export function createOpaGuest(compiled: CompiledModule): opa.OpaGuest {
  // Required when it is first needed: the builtins are several MiB of memory in every thread, and most servers have no
  // Rego module. An import could only be awaited, which a thread that handles its messages in order cannot do.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const { OpaGuest, opaBuiltins } = createRequire(import.meta.url)(`./opa.${extension}`) as typeof opa;
  return new OpaGuest(compiled, opaBuiltins);
}
