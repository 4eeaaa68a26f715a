export type { CallContext, CallLimits, HostCall } from './call.ts';
export { compileModule } from './compile.ts';
export type { CompiledModule, ModuleShape, SandboxOptions } from './compile.ts';
export { WasmError } from './errors.ts';
export type { WasmErrorCode } from './errors.ts';
export { Sandbox, SandboxInstance } from './sandbox.ts';
export type { HostFunction, HostImports, SandboxHost } from './sandbox.ts';
