import { ModuleError } from './errors.ts';

/** The kinds of modules, as the metadata name them. */
export type ExecutionMode = 'kubewarden-wapc' | 'opa' | 'gatekeeper' | 'wasi';

/** All kinds. */
export const EXECUTION_MODES: readonly ExecutionMode[] = ['kubewarden-wapc', 'opa', 'gatekeeper', 'wasi'];

/** What a module imports and exports, as far as its kind shows in it. */
export interface ModuleInterface {
  readonly imports: readonly { readonly module: string; readonly name: string }[];
  readonly functionExports: readonly string[];
}

/**
 * What a module imports and exports. Compiles it lazily, which is cheap beside what loading a policy takes.
 * @throws ModuleError `not-wasm`
 */
export function moduleInterface(bytes: Uint8Array): ModuleInterface {
  try {
    const module = new WebAssembly.Module(bytes);
    return {
      imports: WebAssembly.Module.imports(module).map(({ module: from, name }) => ({ module: from, name })),
      functionExports: WebAssembly.Module.exports(module).flatMap(({ kind, name }) =>
        kind === 'function' ? [name] : [],
      ),
    };
  } catch (error) {
    throw new ModuleError(
      'not-wasm',
      `not a valid WebAssembly module: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

/** What is said about a module's kind. */
export interface StatedMode {
  /** By the module's metadata. */
  readonly metadata?: ExecutionMode | undefined;
  /** By the user. */
  readonly chosen?: ExecutionMode | undefined;
}

/** What a module's interface can tell: OPA and Gatekeeper policies are built by the same compiler and look the same. */
type Family = 'waPC' | 'WASI' | 'Rego';

const FAMILY: Readonly<Record<ExecutionMode, Family>> = {
  'kubewarden-wapc': 'waPC',
  wasi: 'WASI',
  opa: 'Rego',
  gatekeeper: 'Rego',
};

/**
 * The kind of a module: what is stated, checked against what the module looks like; without a statement, what it looks like.
 * @throws ModuleError `execution-mode-unclear`
 */
export function executionModeOf(module: ModuleInterface, stated: StatedMode = {}): ExecutionMode {
  const { metadata, chosen } = stated;
  if (metadata !== undefined && chosen !== undefined && metadata !== chosen) {
    throw unclear(`its metadata say ${metadata}, but ${chosen} was chosen: leave the choice away`);
  }
  const family = familyOf(module);
  const mode = chosen ?? metadata ?? impliedMode(family);
  if (FAMILY[mode] !== family) {
    throw unclear(
      `expected a ${FAMILY[mode]} module because ${chosen === undefined ? 'its metadata say' : 'the choice is'} ${mode}, ` +
        `got one whose imports and exports are those of ${family}: correct the executionMode of the metadata, or the build`,
    );
  }
  return mode;
}

function impliedMode(family: Family): ExecutionMode {
  if (family === 'Rego') {
    throw unclear(
      'it is a Rego policy, but nothing says whether for OPA or for Gatekeeper: choose one (-e opa, -e gatekeeper), ' +
        'or state executionMode in the metadata ("portcullis annotate")',
    );
  }
  return family === 'waPC' ? 'kubewarden-wapc' : 'wasi';
}

function familyOf({ imports, functionExports }: ModuleInterface): Family {
  const importsFrom = (module: string): boolean => imports.some((entry) => entry.module === module);
  const exported = new Set(functionExports);
  const isWapc = exported.has('__guest_call');
  const isRego = exported.has('opa_malloc') && (exported.has('opa_eval') || exported.has('eval'));
  if (isWapc && isRego) {
    throw unclear('it exports both __guest_call (waPC) and opa_eval (Rego)');
  }
  if (isWapc) {
    return 'waPC';
  }
  if (isRego) {
    return 'Rego';
  }
  if (importsFrom('wapc')) {
    throw unclear('it imports from "wapc", but does not export __guest_call: is a part of the policy missing?');
  }
  if (exported.has('_start')) {
    return 'WASI';
  }
  throw unclear(
    'expected the exports of a policy (__guest_call for waPC, opa_eval for Rego, _start for WASI), got none of them',
  );
}

function unclear(message: string): ModuleError {
  return new ModuleError('execution-mode-unclear', `the kind of the module cannot be told: ${message}`);
}
