import { WasmError } from './errors.ts';
import type { Obstacle } from './function-rewriter.ts';
import { PAGE_BYTES } from './metering.ts';
import { rewriteModule } from './rewrite.ts';

/** How a module is to be sandboxed. */
export interface SandboxOptions {
  /** Upper bound of a guest's linear memory in bytes, rounded down to pages of 64 KiB; at most 1 GiB is used. */
  readonly memoryLimitBytes: number;
  /**
   * `restore`: one instance serves many calls and is put back between them, if that is possible for the module (see
   * `ModuleShape.obstacle`). `fresh`: a new instance for every call.
   */
  readonly isolation: 'restore' | 'fresh';
}

/** What is known of a module after loading; plain data, survives `postMessage`. */
export interface ModuleShape {
  /** Functions that the module imports. */
  readonly imports: readonly { readonly module: string; readonly name: string }[];
  /** Names of the functions that the module exports. */
  readonly functionExports: readonly string[];
  /** Names of the globals that the module exports. */
  readonly globalExports: readonly string[];
  /** Whether it has a linear memory, of its own or imported. */
  readonly hasMemory: boolean;
  /** Upper bound of its memory in pages of 64 KiB: its own maximum, or the limit. */
  readonly memoryPages: number;
  /** Whether it has a start function, which the sandbox calls itself. */
  readonly hasStart: boolean;
  /** How calls are kept apart; `fresh` although `restore` was asked for: see `obstacle`. */
  readonly isolation: 'restore' | 'fresh';
  /** Why an instance cannot be put back: the code changes a table, drops a segment, or there is no memory to put back. */
  readonly obstacle: Obstacle | 'no-memory' | undefined;
  readonly functions: number;
  readonly originalBytes: number;
  readonly rewrittenBytes: number;
}

/** A module that is ready to be instantiated, in this thread or (by `postMessage`) in another one. */
export interface CompiledModule {
  readonly module: WebAssembly.Module;
  readonly shape: ModuleShape;
}

/** Policies of the Go toolchain with the Kubernetes API linked in are about 20 MB; three times that. */
export const MAX_MODULE_BYTES = 64 * 1024 * 1024;

const MAGIC = [0x00, 0x61, 0x73, 0x6d];

/**
 * Validates a module, rewrites it for the sandbox and compiles the result.
 * @throws WasmError `module-invalid`, `feature-unsupported`, `import-missing` (imports other than functions), `memory-limit`
 */
export function compileModule(bytes: Uint8Array, options: SandboxOptions): CompiledModule {
  // Nothing else guarantees that rewriting does not turn an invalid module into a valid one.
  validate(bytes);
  const limitPages = Math.floor(options.memoryLimitBytes / PAGE_BYTES);
  let isolation = options.isolation;
  let obstacle: ModuleShape['obstacle'];
  let rewritten = rewriteModule(bytes, limitPages, isolation === 'restore');
  if (typeof rewritten === 'string') {
    isolation = 'fresh';
    obstacle = rewritten;
    rewritten = rewriteModule(bytes, limitPages, false);
    if (typeof rewritten === 'string') {
      throw new WasmError('module-invalid', `the module cannot be rewritten: ${rewritten}`);
    }
  } else if (!rewritten.hasMemory && isolation === 'restore') {
    isolation = 'fresh';
    obstacle = 'no-memory';
  }
  return {
    module: compileRewritten(rewritten.bytes),
    shape: {
      imports: rewritten.functionImports,
      functionExports: rewritten.functionExports,
      globalExports: rewritten.globalExports,
      hasMemory: rewritten.hasMemory,
      memoryPages: rewritten.memoryPages,
      hasStart: rewritten.hasStart,
      isolation,
      obstacle,
      functions: rewritten.functions,
      originalBytes: bytes.length,
      rewrittenBytes: rewritten.bytes.length,
    },
  };
}

function validate(bytes: Uint8Array): void {
  if (bytes.length > MAX_MODULE_BYTES) {
    throw new WasmError(
      'module-invalid',
      `the module is too large: expected at most ${MAX_MODULE_BYTES} bytes, got ${bytes.length}`,
    );
  }
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) {
    const got = bytes.length === 0 ? 'an empty file' : `a file that starts with ${hex(bytes.subarray(0, 4))}`;
    throw new WasmError('module-invalid', `not a WebAssembly module: expected the bytes 00 61 73 6d, got ${got}`);
  }
  if (!WebAssembly.validate(bytes)) {
    throw new WasmError(
      'module-invalid',
      'not a valid WebAssembly module: it starts like one, but is damaged, truncated or of a newer kind; expected a ' +
        'core module of version 1',
    );
  }
}

function compileRewritten(bytes: Uint8Array): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) {
    // Added code can exceed one of the engine's limits (size and locals of a function, number of types).
    throw new WasmError(
      'module-invalid',
      `the module is at a limit of the engine: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}
