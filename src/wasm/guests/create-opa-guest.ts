import { createRequire } from 'node:module';
import type { CompiledModule } from '../instrumentation/compile.ts';
import type { InstanceShare } from './instance-memory.ts';
import type * as opa from './opa.ts';

/**
 * A guest for a Rego module, with OPA's builtins. It starts with its first evaluation.
 * @throws WasmError as the constructor of OpaGuest
 */
export function createOpaGuest(compiled: CompiledModule, share?: InstanceShare): opa.OpaGuest {
  // Loaded on first use: the builtins take several MiB in every thread, and most servers have no Rego module.
  // `require`, because the worker handles its messages synchronously and cannot await an `import()`.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const { OpaGuest, opaBuiltins } = createRequire(import.meta.url)(`./opa.${extension}`) as typeof opa;
  return new OpaGuest(compiled, opaBuiltins, share);
}
