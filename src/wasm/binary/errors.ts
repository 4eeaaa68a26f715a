import { CodedError } from '../../values/index.ts';

/** Reasons why a module could not be loaded or a guest call failed. */
export type WasmErrorCode =
  /** At load: the bytes are not a valid WebAssembly module, or exceed a limit of the loader. */
  | 'module-invalid'
  /** At load: compiling the module would take too much memory or time. The message names the function and the bound. */
  | 'module-too-costly'
  /** At load: whether the module is too costly is not known, because the system ended the process that tried it. */
  | 'trial-failed'
  /**
   * At load: the module is valid, but uses a WebAssembly feature that the sandbox does not support. The message names
   * it.
   */
  | 'feature-unsupported'
  /** At load: the module has imports that the host does not provide. The message names them. */
  | 'import-missing'
  /** At load: the module lacks a function or memory that its execution mode requires. */
  | 'export-missing'
  /** At load: the module's initial memory exceeds the limit. */
  | 'memory-limit'
  /** At load: an instance holds more memory between calls than it may. */
  | 'memory-exceeded'
  /** At load: a Rego module uses builtins that this host does not implement. The message names them. */
  | 'builtin-missing'
  /** At load: a Rego module has an ABI version that this host does not support. */
  | 'abi-unsupported'
  /** At load: the module takes too long to start. */
  | 'start-too-slow'
  /** In a call: the guest trapped (unreachable, out of bounds, division by zero, stack overflow, ...). */
  | 'trap'
  /** In a call: the guest used more fuel than its limit. */
  | 'out-of-fuel'
  /** In a call: the guest passed a pointer, length or handle outside of its memory. */
  | 'bad-pointer'
  /** In a call: the guest's answer exceeds the limit. */
  | 'answer-too-large'
  /** In a call: the guest reported an error. The message contains its text. */
  | 'guest-error';

/** The error class of this folder. */
export class WasmError extends CodedError<WasmErrorCode> {
  override readonly name: string = 'WasmError';
}
