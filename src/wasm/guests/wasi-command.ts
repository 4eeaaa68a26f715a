import { errorText } from '../../values/index.ts';
import type { CallContext } from './call.ts';
import type { CompiledModule } from '../instrumentation/compile.ts';
import { WasmError } from '../binary/errors.ts';
import type { InstanceShare } from './instance-memory.ts';
import { Sandbox } from './sandbox.ts';
import type { HostFunction, HostImports, SandboxInstance } from './sandbox.ts';
import { createWasi, ExitSignal, WASI_MODULE, WasiProcess } from './wasi.ts';

/** Modules from which commands import the host function `call`: plain commands, and programs built with Javy. */
const HOST_CALL_MODULES = ['host', 'kubewarden:javy/host'] as const;

/** The output of a command. */
export interface CommandResult {
  readonly stdout: Uint8Array;
  /** 0 also when the program returned from its main function. */
  readonly exitCode: number;
}

/** The state of the run in progress. */
interface Run {
  readonly process: WasiProcess;
  readonly context: CallContext;
}

/**
 * A guest that is a program: it reads stdin, writes stdout, and exits. Every run starts with a new or restored
 * instance.
 */
export class WasiCommand {
  readonly #sandbox: Sandbox;
  #run: Run | undefined;

  /** @throws WasmError `export-missing` when there is no `_start` */
  constructor(compiled: CompiledModule, share?: InstanceShare) {
    if (!compiled.shape.functionExports.includes('_start')) {
      throw new WasmError(
        'export-missing',
        'expected a WASI command that exports the function _start, got a module without it: build a program, not a library',
      );
    }
    this.#sandbox = new Sandbox(compiled, { imports: (instance) => this.#imports(instance) }, share);
  }

  /** See {@link Sandbox.start}. @throws WasmError `import-missing`, and any error of the module's start function */
  start(): void {
    this.#sandbox.start();
  }

  /**
   * Runs the program once. `args` starts with the program's name. Responses of host calls are appended to stdin; lines
   * on stderr go to `context.log`. An exit code other than 0 is a result, not an error.
   * @throws WasmError `trap`, `out-of-fuel`, `answer-too-large`, `guest-error`, `bad-pointer`
   */
  run(args: readonly string[], stdin: Uint8Array | string, context: CallContext): CommandResult {
    const input = typeof stdin === 'string' ? new TextEncoder().encode(stdin) : stdin;
    const { limits, log } = context;
    const process = new WasiProcess({ args, stdin: input, stdoutLimitBytes: limits.answerBytes, log });
    this.#run = { process, context };
    try {
      const exitCode = this.#sandbox.call(limits.fuel, start);
      return { stdout: process.stdout(), exitCode };
    } finally {
      this.#run = undefined;
      process.flush();
    }
  }

  #imports(instance: SandboxInstance): HostImports {
    // The module's start function may call WASI functions before the first run.
    const idle = new WasiProcess({ log: () => undefined });
    const call = this.#hostCall(instance);
    return {
      [WASI_MODULE]: createWasi(instance, () => this.#run?.process ?? idle),
      ...Object.fromEntries(HOST_CALL_MODULES.map((module) => [module, { call }])),
    };
  }

  #hostCall(instance: SandboxInstance): HostFunction {
    return (...ranges: number[]): number => {
      const run = this.#run;
      if (run === undefined) {
        throw new WasmError('guest-error', 'the guest called the host outside of a request');
      }
      const [bindingPtr = 0, bindingSize = 0, namespacePtr = 0, namespaceSize = 0] = ranges;
      const [operationPtr = 0, operationSize = 0, payloadPtr = 0, payloadSize = 0] = ranges.slice(4);
      const binding = instance.readString(bindingPtr, bindingSize);
      const namespace = instance.readString(namespacePtr, namespaceSize);
      const operation = instance.readString(operationPtr, operationSize);
      const payload = instance.read(payloadPtr, payloadSize);
      const { failed, answer } = outcomeOf(() => run.context.hostCall(binding, namespace, operation, payload));
      run.process.stdin.append(answer);
      return failed ? 1 : 0;
    };
  }
}

function start(instance: SandboxInstance): number {
  try {
    instance.func('_start')();
    return 0;
  } catch (error) {
    if (error instanceof ExitSignal) {
      return error.exitCode;
    }
    throw error;
  }
}

function outcomeOf(call: () => Uint8Array): { failed: boolean; answer: Uint8Array } {
  try {
    return { failed: false, answer: call() };
  } catch (error) {
    return { failed: true, answer: new TextEncoder().encode(errorText(error)) };
  }
}
