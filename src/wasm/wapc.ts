import type { CallContext } from './call.ts';
import type { CompiledModule } from './compile.ts';
import { WasmError } from './errors.ts';
import { HOST_FUNCTION_FUEL } from './metering.ts';
import { Sandbox } from './sandbox.ts';
import type { HostFunction, HostImports, SandboxInstance } from './sandbox.ts';
import { createWasi, ExitSignal, LOG_LIMIT_BYTES, LOG_LINE_LIMIT_BYTES, WASI_MODULE, WasiProcess } from './wasi.ts';

/** Longest error text that is taken from a guest: it ends up in a denial's message, of which people read a few lines. */
export const GUEST_ERROR_BYTES = 16 * 1024;

/** Bytes that the host copies for one unit of the guest's fuel; the same rate as memory.copy. */
const COPIED_BYTES_PER_FUEL = 16;

/** Fuel for asking for a host capability: looking it up, and the error that most hosts answer something unknown with. */
const CAPABILITY_FUEL = 5_000;

/** Fuel for one byte that a guest hands over with it: the host reads it as JSON. */
const CAPABILITY_FUEL_PER_BYTE = 16;

/** Longest text of AssemblyScript's abort, in UTF-16 bytes. */
const ABORT_TEXT_BYTES = 2048;

/** A request on its way: one `call`. */
interface Exchange {
  readonly operation: string;
  readonly payload: Uint8Array | string;
  readonly payloadBytes: number;
  readonly context: CallContext;
  answer: Uint8Array | undefined;
  error: string | undefined;
  /** What the last host call gave. */
  hostResponse: Uint8Array;
  hostError: Uint8Array;
  /** Bytes of log text that the guest may still write. */
  logBytesLeft: number;
}

const encoder = new TextEncoder();
const NOTHING = new Uint8Array(0);

/**
 * A guest that speaks waPC, as most Kubewarden policies do: the host calls `__guest_call`, the guest fetches the request
 * and hands over its answer through imports of module `wapc`. Contract: contracts/kubewarden.md section 4.1.
 */
export class WapcGuest {
  readonly #sandbox: Sandbox;
  #exchange: Exchange | undefined;
  #process: WasiProcess | undefined;

  /** @throws WasmError `export-missing`, `import-missing`, and whatever the guest's init ends in */
  constructor(compiled: CompiledModule) {
    if (!compiled.shape.functionExports.includes('__guest_call') || !compiled.shape.hasMemory) {
      throw new WasmError(
        'export-missing',
        'the module is not a waPC guest: expected a memory and an exported function __guest_call; check the execution mode',
      );
    }
    this.#sandbox = new Sandbox(compiled, {
      imports: (instance) => this.#imports(instance),
      init: initialize,
    });
  }

  /**
   * Calls one of the guest's operations (`validate`, `validate_settings`, `protocol_version`).
   * @returns the answer, a copy
   * @throws WasmError `guest-error` with the guest's own words, `trap`, `out-of-fuel`, `answer-too-large`, `bad-pointer`
   */
  call(operation: string, payload: Uint8Array | string, context: CallContext): Uint8Array {
    const payloadBytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
    const exchange: Exchange = {
      operation,
      payload,
      payloadBytes,
      context,
      answer: undefined,
      error: undefined,
      hostResponse: NOTHING,
      hostError: NOTHING,
      logBytesLeft: LOG_LIMIT_BYTES,
    };
    this.#exchange = exchange;
    try {
      const success = this.#sandbox.call(context.limits.fuel, (instance) =>
        instance.func('__guest_call')(Buffer.byteLength(operation), payloadBytes),
      );
      return answerOf(exchange, success === 1);
    } finally {
      this.#exchange = undefined;
      this.#process?.flush();
      this.#process = undefined;
    }
  }

  /** Fuel that the last call used. */
  get fuelUsed(): number {
    return this.#sandbox.fuelUsed;
  }

  #imports(instance: SandboxInstance): HostImports {
    return {
      wapc: charged(instance, this.#wapcFunctions(instance)),
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
        const exchange = this.#current();
        const { answerBytes } = exchange.context.limits;
        if (length >>> 0 > answerBytes) {
          throw new WasmError(
            'answer-too-large',
            `the guest's answer is too large: expected at most ${answerBytes} bytes, got ${length >>> 0}`,
          );
        }
        instance.chargeFuel(length / COPIED_BYTES_PER_FUEL);
        exchange.answer = instance.read(ptr, length);
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
    const exchange = this.#current();
    const range = (index: number): Uint8Array => instance.view(ranges[index] ?? 0, ranges[index + 1] ?? 0);
    const length = [0, 2, 4, 6].reduce((sum, index) => sum + range(index).length, 0);
    instance.chargeFuel(CAPABILITY_FUEL + length * CAPABILITY_FUEL_PER_BYTE);
    const [binding, namespace, operation] = [0, 2, 4].map((index) => Buffer.from(range(index)).toString()) as [
      string,
      string,
      string,
    ];
    const payload = range(6).slice();
    exchange.hostResponse = NOTHING;
    exchange.hostError = NOTHING;
    try {
      exchange.hostResponse = exchange.context.hostCall(binding, namespace, operation, payload);
      return 1;
    } catch (error) {
      exchange.hostError = encoder.encode(error instanceof Error ? error.message : String(error));
      return 0;
    }
  }

  #log(instance: SandboxInstance, ptr: number, length: number): void {
    const exchange = this.#exchange;
    const text = readText(instance, ptr, length, LOG_LINE_LIMIT_BYTES);
    // Nobody listens during init.
    if (exchange !== undefined && exchange.logBytesLeft > 0) {
      exchange.logBytesLeft -= text.length;
      exchange.context.log(text);
    }
  }

  #current(): Exchange {
    if (this.#exchange === undefined) {
      throw new WasmError(
        'guest-error',
        'the guest called the host before it was asked anything (in its init function)',
      );
    }
    return this.#exchange;
  }

  #wasiProcess(): WasiProcess {
    const context = this.#exchange?.context;
    if (context === undefined) {
      return new WasiProcess({ log: () => undefined });
    }
    this.#process ??= new WasiProcess({ log: context.log });
    return this.#process;
  }
}

/** The same functions, with a charge for being called. */
function charged(instance: SandboxInstance, functions: Record<string, HostFunction>): Record<string, HostFunction> {
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

/** Runs what toolchains emit to start a guest. Commands end with `proc_exit(0)`, which is no error here. */
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
      throw new WasmError('guest-error', `the guest ended itself at its start with exit code ${error.exitCode}`, {
        cause: error,
      });
    }
  }
  if (instance.has('wapc_init')) {
    instance.func('wapc_init')();
  }
}

function answerOf(exchange: Exchange, success: boolean): Uint8Array {
  if (!success) {
    throw new WasmError(
      'guest-error',
      exchange.error ?? `the guest failed at ${exchange.operation} without saying why: __guest_call did not return 1`,
    );
  }
  if (exchange.answer === undefined) {
    throw new WasmError(
      'guest-error',
      `the guest gave no answer to ${exchange.operation}: expected a __guest_response`,
    );
  }
  return exchange.answer;
}

/** Text from the guest, cut to `limit` bytes. */
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

/** AssemblyScript's failed assertions; its strings are UTF-16 with their size in bytes in front. */
function abort(instance: SandboxInstance, message: number, file: number, line: number): never {
  const text = (ptr: number): string => {
    const bytes = ptr === 0 ? 0 : Math.min(instance.getUint32(ptr - 4), ABORT_TEXT_BYTES);
    return Buffer.from(instance.view(ptr, bytes)).toString('utf16le');
  };
  throw new WasmError('trap', `the guest aborted: ${text(message)} (${text(file)}:${line})`);
}
