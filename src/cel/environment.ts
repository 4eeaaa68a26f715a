import { check, Declarations, validateLiterals } from './check/index.ts';
import type { SizeEstimator, TypeProvider } from './check/index.ts';
import { CelError } from './errors.ts';
import { compileExpression, COMPREHENSION_LIBRARY, OPTIONAL_LIBRARY, standardLibrary } from './evaluate/index.ts';
import type { StructFactory } from './evaluate/index.ts';
import type { Library, Overload } from './library.ts';
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
import type { CelType } from './type.ts';

/** Oldest and newest Kubernetes minor version (of 1.x) whose language is known. */
export const MIN_KUBERNETES_VERSION = 26;
export const MAX_KUBERNETES_VERSION = 37;

/** What came to the language itself after the beginning, and with which Kubernetes minor version. */
const SINCE = {
  optionalTypes: 28,
  crossTypeComparisons: 28,
  parsedLiterals: 29,
  twoVariableMacros: 32,
  listMacros: 34,
  escapedIdentifiers: 37,
} as const;

/** What the language accepts. */
export interface Language {
  /** `a.?b`, `a[?b]`, `[?a]`, `{?a: b}`, `T{?a: b}`. */
  readonly optionalSyntax: boolean;
  /** Fields in back-quotes. */
  readonly escapedIdentifiers: boolean;
  /** Whether numbers of different types can be ordered: `1 < 2.0`. */
  readonly crossTypeComparisons: boolean;
  /** Whether lists and maps must not mix types, `dyn` being one. */
  readonly homogeneousLiterals: boolean;
  /** Whether literals of durations, timestamps and patterns must be right for an expression to compile. */
  readonly parsedLiterals: boolean;
}

export interface EnvironmentOptions {
  /** Whose language it is: the minor version of an API server. Default: {@link MAX_KUBERNETES_VERSION}. */
  readonly kubernetesVersion?: number;
  /** Variables and their types; `DYN` for those whose type only their value knows. Names may have dots. */
  readonly variables: Readonly<Record<string, CelType>>;
  /** Types of structs beside those of libraries. Default: none. */
  readonly types?: TypeProvider | undefined;
  /** Makes values of those structs. Default: none can be made. */
  readonly structs?: StructFactory | undefined;
  /** The namespace that names are looked up in first. Default: none. */
  readonly container?: string | undefined;
  /** Libraries beside Kubernetes'. Default: none. */
  readonly libraries?: readonly Library[];
  /** Macros beside Kubernetes'. Default: none. */
  readonly macros?: readonly Macro[];
  /** Bounds of the sizes of what variables hold, for estimates of costs. Default: nothing is known. */
  readonly sizes?: SizeEstimator | undefined;
  /** What is to be accepted other than the version has it. */
  readonly language?: Partial<Language>;
}

/**
 * Everything that expressions may name, for one version of Kubernetes. Making one costs much more than compiling an
 * expression, so it is made once for all expressions with the same variables.
 *
 * @throws CelError 'environment-invalid' when the version is not known or something is declared twice.
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
    const macros = new MacroSet([...macrosOf(this.kubernetesVersion), ...(options.macros ?? [])]);
    this.#parseOptions = { macros, optionalSyntax, escapedIdentifiers };
    this.declarations = new Declarations({
      libraries: [...librariesOf(this.kubernetesVersion), ...(options.libraries ?? [])],
      variables: options.variables,
      types: options.types,
      container: options.container,
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
   * Parses, checks and compiles an expression.
   *
   * @throws CelError 'syntax-invalid' or 'check-failed' with every mistake found.
   */
  compile(text: string): Program {
    const checked = check(parse(text, this.#parseOptions), this.declarations);
    const { homogeneousLiterals, parsedLiterals } = this.language;
    validateLiterals(checked, { homogeneous: homogeneousLiterals, parsed: parsedLiterals });
    const compiled = compileExpression({
      expression: checked.expression,
      overloads: checked.overloads,
      meanings: checked.meanings,
      functions: this.#functions,
      structs: this.#options.structs,
    });
    return new Program(checked, compiled, this.#options.sizes);
  }
}

function knownVersion(version: number): number {
  if (!Number.isInteger(version) || version < MIN_KUBERNETES_VERSION || version > MAX_KUBERNETES_VERSION) {
    const expected = `a minor version between ${MIN_KUBERNETES_VERSION} and ${MAX_KUBERNETES_VERSION}`;
    throw new CelError('environment-invalid', `Kubernetes version is not known: expected ${expected}, got ${version}`);
  }
  return version;
}

function languageOf(version: number): Language {
  return {
    optionalSyntax: version >= SINCE.optionalTypes,
    escapedIdentifiers: version >= SINCE.escapedIdentifiers,
    crossTypeComparisons: version >= SINCE.crossTypeComparisons,
    homogeneousLiterals: true,
    parsedLiterals: version >= SINCE.parsedLiterals,
  };
}

/** `existsOne` with one variable is missing on purpose: cel-go has it, API servers do not enable it. */
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

/** Functions that came later, and with which version: for hints. */
function laterFunctions(version: number): ReadonlyMap<string, number> {
  const later = [OPTIONAL_LIBRARY, ...KUBERNETES_LIBRARIES].filter(({ since = 0 }) => since > version);
  return new Map(later.flatMap(({ since = 0, functions }) => functions.map(({ name }) => [name, since] as const)));
}

function isCrossTypeComparison(id: string): boolean {
  const types = /^(?:less|greater)(?:_equals)?_(int64|uint64|double)_(int64|uint64|double)$/u.exec(id);
  return types !== null && types[1] !== types[2];
}
