/** Why a WebAssembly module could not be loaded, or why one call of a guest gave no answer. */
export type WasmErrorCode =
  /** At load: the bytes are not a valid WebAssembly module (or exceed a sanity limit of the loader). */
  | 'module-invalid'
  /** At load: the module is valid, but needs a WebAssembly feature that the sandbox does not run. The message names it. */
  | 'feature-unsupported'
  /** At load: the module wants imports that its kind of host does not offer. The message names them. */
  | 'import-missing'
  /** At load: the module lacks a function or memory that its kind of guest must export. */
  | 'export-missing'
  /** At load: the module asks for more memory at its start than the limit allows. */
  | 'memory-limit'
  /** At load: a Rego module wants builtins that this host does not implement. The message names them. */
  | 'builtin-missing'
  /** At load: a Rego module speaks an ABI version that this host does not. */
  | 'abi-unsupported'
  /** In a call: the guest trapped (unreachable, out of bounds, division by zero, stack overflow, ...). */
  | 'trap'
  /** In a call: the guest executed more than its fuel allows. */
  | 'out-of-fuel'
  /** In a call: the guest gave the host a pointer, length or handle that lies outside of its own memory. */
  | 'bad-pointer'
  /** In a call: the guest's answer is larger than the call allows. */
  | 'answer-too-large'
  /** In a call: the guest itself reported that it failed. The message carries its words. */
  | 'guest-error';

/** The only error class that this folder throws on purpose. */
export class WasmError extends Error {
  override readonly name: string = 'WasmError';
  readonly code: WasmErrorCode;

  constructor(code: WasmErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
