import { WasmError } from './errors.ts';
import { ValueType } from './opcodes.ts';

/** The error for a valid module that uses an unsupported feature. */
export function unsupported(feature: string): WasmError {
  return new WasmError(
    'feature-unsupported',
    `the module uses ${feature}, which the sandbox does not support: expected WebAssembly 2.0 (with SIMD, tail calls and ` +
      'extended constants); compile the policy without that feature',
  );
}

/** @throws WasmError `feature-unsupported` unless `type` is a value type of a supported feature. */
export function checkValueType(type: number): number {
  if ((type >= ValueType.v128 && type <= ValueType.i32) || type === ValueType.funcref || type === ValueType.externref) {
    return type;
  }
  throw unsupported(`value type 0x${type.toString(16)} (garbage collection or typed references)`);
}

/**
 * The heap types `func` and `extern`, and their null types `nofunc` (0x73) and `noextern` (0x72) that newer toolchains
 * emit.
 */
const NULL_TYPES: readonly number[] = [ValueType.funcref, ValueType.externref, 0x73, 0x72];

/** @throws WasmError `feature-unsupported` unless `type` is a heap type of a supported feature. */
export function checkHeapType(type: number): void {
  if (!NULL_TYPES.includes(type)) {
    throw unsupported('garbage collection or typed references');
  }
}
