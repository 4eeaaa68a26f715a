import { check, Declarations, inferType, literalPatternSize, validateLiterals } from './check/index.ts';
import type { InferredType, SizeEstimator, TypeProvider } from './check/index.ts';
import { CelError } from './model/errors.ts';
import { compileExpression, COMPREHENSION_LIBRARY, OPTIONAL_LIBRARY, standardLibrary } from './evaluate/index.ts';
import type { StructFactory } from './evaluate/index.ts';
import type { Library, Overload } from './model/library.ts';
import { KUBERNETES_LIBRARIES, librariesFor } from './libraries/index.ts';
import { Program } from './program.ts';
import {
  LIST_MACROS,
  MacroSet,
  OPTIONAL_FLAT_MACROS,
  OPTIONAL_MACROS,
  parse,
  STANDARD_MACROS,
  TWO_VARIABLE_MACROS,
} from './syntax/index.ts';
import type { Macro, ParseOptions } from './syntax/index.ts';
import type { CelType } from './model/type.ts';

/** Oldest and newest supported Kubernetes minor version (of 1.x). */
export const MIN_KUBERNETES_VERSION = 26;
export const MAX_KUBERNETES_VERSION = 37;

/** Kubernetes minor versions that added features of the language. */
const SINCE = {
  optionalTypes: 28,
  crossTypeComparisons: 28,
  parsedLiterals: 29,
  twoVariableMacros: 32,
  listMacros: 34,
  escapedIdentifiers: 37,
  optionalReceivers: 37,
} as const;

/** Optional features of the language. */
export interface Language {
  /** `a.?b`, `a[?b]`, `[?a]`, `{?a: b}`, `T{?a: b}`. */
  readonly optionalSyntax: boolean;
  /** Field names in back-quotes. */
  readonly escapedIdentifiers: boolean;
  /** Whether numbers of different types can be compared: `1 < 2.0`. */
  readonly crossTypeComparisons: boolean;
  /** Whether lists and maps must not mix types, including `dyn`. */
  readonly homogeneousLiterals: boolean;
  /** Whether literals of durations, timestamps and patterns are validated at compile time. */
  readonly parsedLiterals: boolean;
  /** Whether `orValue` of a value that is not an optional is an error; older evaluators return the value. */
  readonly optionalReceivers: boolean;
}

export interface EnvironmentOptions {
  /** Minor version of the API server whose language is used. Default: {@link MAX_KUBERNETES_VERSION}. */
  readonly kubernetesVersion?: number;
  /** Variables and their types; `DYN` if the type is known only at run time. Names may contain dots. */
  readonly variables: Readonly<Record<string, CelType>>;
  /** Struct types besides those of libraries. Default: none. */
  readonly types?: TypeProvider | undefined;
  /** Creates values of those structs. Default: none can be created. */
  readonly structs?: StructFactory | undefined;
  /** Libraries besides those of Kubernetes. Default: none. */
  readonly libraries?: readonly Library[];
  /** Bounds of the sizes of variables, for cost estimates. Default: unknown. */
  readonly sizes?: SizeEstimator | undefined;
  /** Overrides features of the version's language. */
  readonly language?: Partial<Language>;
}

/**
 * Creates the environment of expressions for one Kubernetes version. This takes much longer than compiling an
 * expression: share it between all expressions with the same variables.
 * @throws CelError 'environment-invalid' if the version is not supported or something is declared twice
 */
export function createEnvironment(options: EnvironmentOptions): Environment {
  return new Environment(options);
}

export class Environment {
  readonly kubernetesVersion: number;
  readonly language: Language;
  readonly declarations: Declarations;
  readonly #options: EnvironmentOptions;
  readonly #parseOptions: ParseOptions;
  readonly #functions: ReadonlyMap<string, readonly Overload[]>;

  constructor(options: EnvironmentOptions) {
    this.#options = options;
    this.kubernetesVersion = knownVersion(options.kubernetesVersion ?? MAX_KUBERNETES_VERSION);
    this.language = { ...languageOf(this.kubernetesVersion), ...options.language };
    const { optionalSyntax, escapedIdentifiers, crossTypeComparisons } = this.language;
    const macros = new MacroSet(macrosOf(this.kubernetesVersion));
    this.#parseOptions = { macros, optionalSyntax, escapedIdentifiers };
    this.declarations = new Declarations({
      libraries: [...librariesOf(this.kubernetesVersion), ...(options.libraries ?? [])],
      variables: options.variables,
      types: options.types,
      macros,
      laterFunctions: laterFunctions(this.kubernetesVersion),
      isExcluded: crossTypeComparisons ? undefined : isCrossTypeComparison,
    });
    this.#functions = new Map(
      Array.from(this.declarations.functions.values(), ({ name, overloads }) => [
        name,
        overloads.map(({ overload }) => overload),
      ]),
    );
  }

  /**
   * Parses and checks an expression.
   * @throws CelError 'syntax-invalid' with all errors
   */
  inferType(text: string): InferredType {
    return inferType(parse(text, this.#parseOptions), this.declarations);
  }

  /**
   * Parses, checks and compiles an expression.
   * @throws CelError 'syntax-invalid' or 'check-failed' with all errors
   */
  compile(text: string): Program {
    const checked = check(parse(text, this.#parseOptions), this.declarations);
    const patternSize = literalPatternSize(checked);
    const { homogeneousLiterals, parsedLiterals } = this.language;
    validateLiterals(checked, { homogeneous: homogeneousLiterals, parsed: parsedLiterals });
    const compiled = compileExpression({
      expression: checked.expression,
      overloads: checked.overloads,
      meanings: checked.meanings,
      functions: this.#functions,
      structs: this.#options.structs,
      optionalReceivers: this.language.optionalReceivers,
    });
    return new Program({ checked, compiled, patternSize, sizes: this.#options.sizes });
  }
}

function knownVersion(version: number): number {
  if (!Number.isInteger(version) || version < MIN_KUBERNETES_VERSION || version > MAX_KUBERNETES_VERSION) {
    const expected = `a minor version between ${MIN_KUBERNETES_VERSION} and ${MAX_KUBERNETES_VERSION}`;
    throw new CelError('environment-invalid', `Kubernetes version is not known: expected ${expected}, got ${version}`);
  }
  return version;
}

/**
 * The features of a Kubernetes minor version.
 * @throws CelError 'environment-invalid' if the version is not supported
 */
export function languageOf(minor: number): Language {
  const version = knownVersion(minor);
  return {
    optionalSyntax: version >= SINCE.optionalTypes,
    escapedIdentifiers: version >= SINCE.escapedIdentifiers,
    crossTypeComparisons: version >= SINCE.crossTypeComparisons,
    homogeneousLiterals: true,
    parsedLiterals: version >= SINCE.parsedLiterals,
    optionalReceivers: version >= SINCE.optionalReceivers,
  };
}

/** Without `existsOne` with one variable, which cel-go has, but API servers do not enable. */
const KUBERNETES_STANDARD_MACROS = STANDARD_MACROS.filter((macro) => macro.name !== 'existsOne');

function macrosOf(version: number): readonly Macro[] {
  return [
    ...KUBERNETES_STANDARD_MACROS,
    ...(version >= SINCE.optionalTypes ? [...OPTIONAL_MACROS, ...OPTIONAL_FLAT_MACROS] : []),
    ...(version >= SINCE.twoVariableMacros ? TWO_VARIABLE_MACROS : []),
    ...(version >= SINCE.listMacros ? LIST_MACROS : []),
  ];
}

function librariesOf(version: number): readonly Library[] {
  const language: readonly Library[] = [standardLibrary(), OPTIONAL_LIBRARY, COMPREHENSION_LIBRARY];
  return [...language.filter(({ since = 0 }) => since <= version), ...librariesFor(version)];
}

/** Functions of later versions with that version, for hints. */
function laterFunctions(version: number): ReadonlyMap<string, number> {
  const later = [OPTIONAL_LIBRARY, ...KUBERNETES_LIBRARIES].filter(({ since = 0 }) => since > version);
  return new Map(later.flatMap(({ since = 0, functions }) => functions.map(({ name }) => [name, since] as const)));
}

function isCrossTypeComparison(id: string): boolean {
  const types = /^(?:less|greater)(?:_equals)?_(int64|uint64|double)_(int64|uint64|double)$/u.exec(id);
  return types !== null && types[1] !== types[2];
}
