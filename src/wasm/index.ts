export type { CallContext, CallLimits } from './call.ts';
export { compileModule } from './compile.ts';
export type { CompiledModule, ModuleShape, SandboxOptions } from './compile.ts';
export { WasmError } from './errors.ts';
export { createOpaGuest } from './create-opa-guest.ts';
export type { OpaGuest } from './opa.ts';
export { WapcGuest } from './wapc.ts';
export { WasiCommand } from './wasi-command.ts';
