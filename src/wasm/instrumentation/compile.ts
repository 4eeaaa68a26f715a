import { errorText } from '../../values/index.ts';
import { WasmError } from '../binary/errors.ts';
import type { Obstacle } from './function-rewriter.ts';
import { PAGE_BYTES } from './metering.ts';
import { rewriteModule } from './rewrite.ts';
import type { RewrittenModule } from './rewrite.ts';
import { tryCompilation } from './trial-compilation.ts';
import { validate } from './validation.ts';

/** Options for {@link compileModule}. */
export interface SandboxOptions {
  /** Maximum linear memory of the guest in bytes, rounded down to pages of 64 KiB; capped at 1 GiB. */
  readonly memoryLimitBytes: number;
  /**
   * `restore`: one instance serves many calls and is restored from a snapshot after each call, if the module allows it
   * (see `ModuleShape.obstacle`). `fresh`: a new instance for every call.
   */
  readonly isolation: 'restore' | 'fresh';
}

/** Facts about a compiled module, as plain data that `postMessage` can copy. */
export interface ModuleShape {
  /** Functions that the module imports. */
  readonly imports: readonly { readonly module: string; readonly name: string }[];
  /** Names of the functions that the module exports. */
  readonly functionExports: readonly string[];
  /** Names of the globals that the module exports. */
  readonly globalExports: readonly string[];
  /** Whether it has a linear memory, defined or imported. */
  readonly hasMemory: boolean;
  /** Maximum memory in pages of 64 KiB: the module's own maximum or the sandbox's limit. */
  readonly memoryPages: number;
  /** Whether it has a start function. The sandbox calls it after instantiation. */
  readonly hasStart: boolean;
  /** `fresh` although the options ask for `restore`: `obstacle` has the reason. */
  readonly isolation: 'restore' | 'fresh';
  /** Why an instance cannot be restored: the code changes a table, drops a segment, or has no memory. */
  readonly obstacle: Obstacle | 'no-memory' | undefined;
  readonly functions: number;
  readonly originalBytes: number;
  readonly rewrittenBytes: number;
  /** Of the rewritten bytes, the bodies of functions. */
  readonly codeBytes: number;
}

/** A module ready to be instantiated. `postMessage` can send it to another thread. */
export interface CompiledModule {
  readonly module: WebAssembly.Module;
  readonly shape: ModuleShape;
}

/** Maximum size of a module: what an administrator can allow (LARGEST_MODULE_BYTES of src/modules). */
export const MAX_MODULE_BYTES = 256 * 1024 * 1024;

const MAGIC = [0x00, 0x61, 0x73, 0x6d];

/**
 * Validates a module, rewrites it for the sandbox and compiles the result.
 * @throws WasmError `module-invalid`, `feature-unsupported`, `import-missing` (imports other than functions), `memory-limit`,
 * `module-too-costly`, `trial-failed`
 */
export function compileModule(bytes: Uint8Array, options: SandboxOptions): CompiledModule {
  checkForm(bytes);
  const { rewritten, isolation, obstacle } = rewrite(bytes, options);
  if (rewritten.doubts !== undefined) {
    tryCompilation(rewritten.bytes, rewritten.doubts);
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
      codeBytes: rewritten.codeBytes,
    },
  };
}

/** @throws WasmError `module-invalid` unless it begins as a module of a size that is accepted */
function checkForm(bytes: Uint8Array): void {
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
}

/**
 * Rewrites a module if V8 accepts the original. It is read first, because only the bounds make V8's validation fast, and because V8
 * does not name the proposals that it lacks. What the rewriter makes of an invalid module is dropped.
 */
function rewrite(bytes: Uint8Array, options: SandboxOptions): Rewriting {
  const rewriting = rewritingFor(bytes, options);
  validate(bytes);
  return rewriting;
}

type Rewriting = { readonly rewritten: RewrittenModule } & Pick<ModuleShape, 'isolation' | 'obstacle'>;

function rewritingFor(bytes: Uint8Array, { isolation, memoryLimitBytes }: SandboxOptions): Rewriting {
  const limitPages = Math.floor(memoryLimitBytes / PAGE_BYTES);
  const tracked = isolation === 'restore';
  const rewritten = rewriteModule(bytes, limitPages, tracked);
  if (typeof rewritten !== 'string') {
    return tracked && !rewritten.hasMemory
      ? { rewritten, isolation: 'fresh', obstacle: 'no-memory' }
      : { rewritten, isolation, obstacle: undefined };
  }
  const untracked = rewriteModule(bytes, limitPages, false);
  if (typeof untracked === 'string') {
    throw new WasmError('module-invalid', `the module cannot be rewritten: ${untracked}`);
  }
  return { rewritten: untracked, isolation: 'fresh', obstacle: rewritten };
}

function compileRewritten(bytes: Uint8Array): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) {
    // The added code can exceed a limit of V8 (function size, locals of a function, number of types).
    throw new WasmError('module-invalid', `the rewritten module exceeds a limit of V8: ${errorText(error)}`, {
      cause: error,
    });
  }
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}
