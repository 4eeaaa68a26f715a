import { errorText } from '../../values/index.ts';
import { ModuleError } from '../reference/errors.ts';

/** How a module is called by its host, in the words of the metadata. */
export type ExecutionMode = 'kubewarden-wapc' | 'opa' | 'gatekeeper' | 'wasi';

export const EXECUTION_MODES: readonly ExecutionMode[] = ['kubewarden-wapc', 'opa', 'gatekeeper', 'wasi'];

/**
 * CEL that was compiled to WebAssembly, another execution mode of Kubewarden. A newer one than those that are run here; its metadata
 * or its exports show it.
 */
const FERRICEL = 'ferricel';
/** The allocator that each module of ferricel exports. */
const FERRICEL_EXPORT = 'cel_malloc';

/**
 * Refuses an execution mode that exists, but is not run here.
 * @throws ModuleError `execution-mode-unsupported`
 */
export function requireSupportedMode(mode: string): void {
  if (mode === FERRICEL) {
    throw new ModuleError(
      'execution-mode-unsupported',
      `the policy is CEL compiled to WebAssembly (execution mode ${FERRICEL}), which is not supported: expected one of ` +
        `${EXECUTION_MODES.join(', ')}. builtin:cel runs the ValidatingAdmissionPolicy that it was compiled from, without a module: ` +
        '"portcullis scaffold vap"',
    );
  }
}

/** The imports and exports of a module, which show its execution mode. */
export interface ModuleInterface {
  readonly imports: readonly { readonly module: string; readonly name: string }[];
  readonly functionExports: readonly string[];
}

/**
 * The imports and exports of a module. V8 compiles functions lazily, so this is cheap beside loading a policy.
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
    throw new ModuleError('not-wasm', `not a valid WebAssembly module: ${errorText(error)}`, { cause: error });
  }
}

/** The execution mode as others state it. */
export interface StatedMode {
  readonly metadata?: ExecutionMode | undefined;
  /** The choice of the user. */
  readonly chosen?: ExecutionMode | undefined;
}

/** What an interface shows: OPA and Gatekeeper policies come from the same compiler and look the same. */
type Family = 'waPC' | 'WASI' | 'Rego';

const FAMILY: Readonly<Record<ExecutionMode, Family>> = {
  'kubewarden-wapc': 'waPC',
  wasi: 'WASI',
  opa: 'Rego',
  gatekeeper: 'Rego',
};

/**
 * The execution mode that is stated, checked against the interface of the module; without a statement, the one that the interface implies.
 * @throws ModuleError `execution-mode-unclear`, `execution-mode-unsupported`
 */
export function executionModeOf(module: ModuleInterface, stated: StatedMode = {}): ExecutionMode {
  const { metadata, chosen } = stated;
  if (metadata !== undefined && chosen !== undefined && metadata !== chosen) {
    throw unclear(`its metadata says ${metadata}, but ${chosen} was chosen: omit the choice`);
  }
  const family = familyOf(module);
  const mode = chosen ?? metadata ?? impliedMode(family);
  if (FAMILY[mode] !== family) {
    throw unclear(
      `expected a ${FAMILY[mode]} module because ${chosen === undefined ? 'its metadata says' : 'the choice is'} ${mode}, ` +
        `got one whose imports and exports are those of ${family}: correct executionMode in the metadata, or the build`,
    );
  }
  return mode;
}

function impliedMode(family: Family): ExecutionMode {
  if (family === 'Rego') {
    throw unclear(
      'it is a Rego policy, for OPA or for Gatekeeper: choose one (-e opa, -e gatekeeper), ' +
        'or set executionMode in the metadata ("portcullis annotate")',
    );
  }
  return family === 'waPC' ? 'kubewarden-wapc' : 'wasi';
}

function familyOf({ imports, functionExports }: ModuleInterface): Family {
  const importsFrom = (module: string): boolean => imports.some((entry) => entry.module === module);
  const exported = new Set(functionExports);
  if (exported.has(FERRICEL_EXPORT)) {
    requireSupportedMode(FERRICEL);
  }
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
  return new ModuleError('execution-mode-unclear', `cannot determine the module's execution mode: ${message}`);
}
