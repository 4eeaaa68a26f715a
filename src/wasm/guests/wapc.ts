import { errorText } from '../../values/index.ts';
import type { CallContext } from './call.ts';
import type { CompiledModule } from '../instrumentation/compile.ts';
import { WasmError } from '../binary/errors.ts';
import { HOST_FUNCTION_FUEL } from '../instrumentation/metering.ts';
import type { InstanceShare } from './instance-memory.ts';
import { Sandbox } from './sandbox.ts';
import type { HostFunction, HostImports, SandboxInstance } from './sandbox.ts';
import { createWasi, ExitSignal, LOG_LIMIT_BYTES, LOG_LINE_LIMIT_BYTES, WASI_MODULE, WasiProcess } from './wasi.ts';

/** Maximum length of a guest's error text, which becomes the message of a denial: users read only a few lines. */
export const GUEST_ERROR_BYTES = 16 * 1024;

/** Bytes that the host copies per unit of the guest's fuel; the same rate as memory.copy. */
const COPIED_BYTES_PER_FUEL = 16;

/** Fuel for the call of a host capability: the lookup, and the error response for an unknown capability. */
const CAPABILITY_FUEL = 5_000;

/** Fuel per payload byte of a capability call: the host parses it as JSON. */
const CAPABILITY_FUEL_PER_BYTE = 16;

/** Maximum length of the texts of AssemblyScript's abort, in UTF-16 bytes. */
const ABORT_TEXT_BYTES = 2048;

/** The state of one `call`. */
interface PendingCall {
  readonly operation: string;
  readonly payload: Uint8Array | string;
  readonly payloadBytes: number;
  readonly context: CallContext;
  answer: Uint8Array | undefined;
  error: string | undefined;
  /** Result of the last host call. */
  hostResponse: Uint8Array;
  hostError: Uint8Array;
  /** Bytes of log text that the guest may still write. */
  logBytesLeft: number;
}

const encoder = new TextEncoder();
const EMPTY = new Uint8Array(0);

/**
 * A guest that implements waPC (https://wapc.io/docs/spec/), as most Kubewarden policies do: the host calls
 * `__guest_call`, and the guest reads the request and returns its response through imports of the module `wapc`.
 */
export class WapcGuest {
  readonly #sandbox: Sandbox;
  #pending: PendingCall | undefined;
  #process: WasiProcess | undefined;

  /** @throws WasmError `export-missing` */
  constructor(compiled: CompiledModule, share?: InstanceShare) {
    if (!compiled.shape.functionExports.includes('__guest_call') || !compiled.shape.hasMemory) {
      throw new WasmError(
        'export-missing',
        'the module is not a waPC guest: expected a memory and an exported function __guest_call; check the execution mode',
      );
    }
    this.#sandbox = new Sandbox(
      compiled,
      {
        imports: (instance) => this.#imports(instance),
        init: initialize,
      },
      share,
    );
  }

  /** See {@link Sandbox.start}. @throws WasmError `import-missing`, and any error of the guest's initialization */
  start(): void {
    this.#sandbox.start();
  }

  /**
   * Calls an operation of the guest (`validate`, `validate_settings`, `protocol_version`).
   * @returns a copy of the guest's response
   * @throws WasmError `guest-error` with the guest's error text, `trap`, `out-of-fuel`, `answer-too-large`,
   * `bad-pointer`
   */
  call(operation: string, payload: Uint8Array | string, context: CallContext): Uint8Array {
    const payloadBytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
    const pending: PendingCall = {
      operation,
      payload,
      payloadBytes,
      context,
      answer: undefined,
      error: undefined,
      hostResponse: EMPTY,
      hostError: EMPTY,
      logBytesLeft: LOG_LIMIT_BYTES,
    };
    this.#pending = pending;
    try {
      const success = this.#sandbox.call(context.limits.fuel, (instance) =>
        instance.func('__guest_call')(Buffer.byteLength(operation), payloadBytes),
      );
      return responseOf(pending, success === 1);
    } finally {
      this.#pending = undefined;
      this.#process?.flush();
      this.#process = undefined;
    }
  }

  /** Fuel used by the last call. */
  get fuelUsed(): number {
    return this.#sandbox.fuelUsed;
  }

  #imports(instance: SandboxInstance): HostImports {
    return {
      wapc: withFlatCharge(instance, this.#wapcFunctions(instance)),
      [WASI_MODULE]: createWasi(instance, () => this.#wasiProcess()),
      env: { abort: (message: number, file: number, line: number) => abort(instance, message, file, line) },
    };
  }

  #wapcFunctions(instance: SandboxInstance): Record<string, HostFunction> {
    return {
      __guest_request: (operationPtr: number, payloadPtr: number): void => {
        const { operation, payload, payloadBytes } = this.#current();
        instance.chargeFuel(payloadBytes / COPIED_BYTES_PER_FUEL);
        instance.writeString(operationPtr, operation, Buffer.byteLength(operation));
        if (typeof payload === 'string') {
          instance.writeString(payloadPtr, payload, payloadBytes);
        } else {
          instance.write(payloadPtr, payload);
        }
      },
      __guest_response: (ptr: number, length: number): void => {
        const pending = this.#current();
        const { answerBytes } = pending.context.limits;
        if (length >>> 0 > answerBytes) {
          throw new WasmError(
            'answer-too-large',
            `the guest's answer is too large: expected at most ${answerBytes} bytes, got ${length >>> 0}`,
          );
        }
        instance.chargeFuel(length / COPIED_BYTES_PER_FUEL);
        pending.answer = instance.read(ptr, length);
      },
      __guest_error: (ptr: number, length: number): void => {
        this.#current().error = readText(instance, ptr, length, GUEST_ERROR_BYTES);
      },
      __host_call: (...ranges: number[]): number => this.#hostCall(instance, ranges),
      __host_response_len: () => this.#current().hostResponse.length,
      __host_response: (ptr: number): void => writeCharged(instance, ptr, this.#current().hostResponse),
      __host_error_len: () => this.#current().hostError.length,
      __host_error: (ptr: number): void => writeCharged(instance, ptr, this.#current().hostError),
      __console_log: (ptr: number, length: number): void => this.#log(instance, ptr, length),
    };
  }

  #hostCall(instance: SandboxInstance, ranges: readonly number[]): number {
    const pending = this.#current();
    const range = (index: number): Uint8Array => instance.view(ranges[index] ?? 0, ranges[index + 1] ?? 0);
    const length = [0, 2, 4, 6].reduce((sum, index) => sum + range(index).length, 0);
    instance.chargeFuel(CAPABILITY_FUEL + length * CAPABILITY_FUEL_PER_BYTE);
    const [binding, namespace, operation] = [0, 2, 4].map((index) => Buffer.from(range(index)).toString()) as [
      string,
      string,
      string,
    ];
    const payload = range(6).slice();
    pending.hostResponse = EMPTY;
    pending.hostError = EMPTY;
    try {
      pending.hostResponse = pending.context.hostCall(binding, namespace, operation, payload);
      return 1;
    } catch (error) {
      pending.hostError = encoder.encode(errorText(error));
      return 0;
    }
  }

  #log(instance: SandboxInstance, ptr: number, length: number): void {
    const pending = this.#pending;
    const text = readText(instance, ptr, length, LOG_LINE_LIMIT_BYTES);
    // Log lines of the initialization are dropped.
    if (pending !== undefined && pending.logBytesLeft > 0) {
      pending.logBytesLeft -= text.length;
      pending.context.log(text);
    }
  }

  #current(): PendingCall {
    if (this.#pending === undefined) {
      throw new WasmError('guest-error', 'the guest called the host outside of a request (in its init function)');
    }
    return this.#pending;
  }

  #wasiProcess(): WasiProcess {
    const context = this.#pending?.context;
    if (context === undefined) {
      return new WasiProcess({ log: () => undefined });
    }
    this.#process ??= new WasiProcess({ log: context.log });
    return this.#process;
  }
}

/** Adds the flat price of a host function to each function. */
function withFlatCharge(
  instance: SandboxInstance,
  functions: Record<string, HostFunction>,
): Record<string, HostFunction> {
  return Object.fromEntries(
    Object.entries(functions).map(([name, call]): [string, HostFunction] => [
      name,
      (...args: never[]) => {
        instance.chargeFuel(HOST_FUNCTION_FUEL);
        return call(...args);
      },
    ]),
  );
}

/** Runs the initialization functions that toolchains emit. A command that ends with `proc_exit(0)` is initialized. */
function initialize(instance: SandboxInstance): void {
  try {
    if (instance.has('_initialize')) {
      instance.func('_initialize')();
    } else if (instance.has('_start')) {
      instance.func('_start')();
    }
  } catch (error) {
    if (!(error instanceof ExitSignal)) {
      throw error;
    }
    if (error.exitCode !== 0) {
      throw new WasmError(
        'guest-error',
        `the guest exited during its initialization with exit code ${error.exitCode}`,
        {
          cause: error,
        },
      );
    }
  }
  if (instance.has('wapc_init')) {
    instance.func('wapc_init')();
  }
}

function responseOf(pending: PendingCall, success: boolean): Uint8Array {
  if (!success) {
    throw new WasmError(
      'guest-error',
      pending.error ??
        `the guest failed at ${pending.operation} without an error message: __guest_call did not return 1`,
    );
  }
  if (pending.answer === undefined) {
    throw new WasmError('guest-error', `the guest gave no answer to ${pending.operation}: expected a __guest_response`);
  }
  return pending.answer;
}

/** Text from guest memory, truncated to `limit` bytes. */
function readText(instance: SandboxInstance, ptr: number, length: number, limit: number): string {
  const kept = Math.min(length >>> 0, limit);
  instance.chargeFuel(kept / COPIED_BYTES_PER_FUEL);
  const text = instance.readString(ptr, kept);
  return kept < length >>> 0 ? `${text} ... (cut: ${length >>> 0} bytes)` : text;
}

function writeCharged(instance: SandboxInstance, ptr: number, bytes: Uint8Array): void {
  instance.chargeFuel(bytes.length / COPIED_BYTES_PER_FUEL);
  instance.write(ptr, bytes);
}

/** Implements AssemblyScript's `abort`. Its strings are UTF-16 with their size in bytes before them. */
function abort(instance: SandboxInstance, message: number, file: number, line: number): never {
  const text = (ptr: number): string => {
    const bytes = ptr === 0 ? 0 : Math.min(instance.getUint32(ptr - 4), ABORT_TEXT_BYTES);
    return Buffer.from(instance.view(ptr, bytes)).toString('utf16le');
  };
  throw new WasmError('trap', `the guest aborted: ${text(message)} (${text(file)}:${line})`);
}
