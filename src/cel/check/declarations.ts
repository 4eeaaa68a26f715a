import { rootedName } from '../model/rooted-name.ts';
import { CelError } from '../model/errors.ts';
import type { FunctionDeclaration, Library, Overload } from '../model/library.ts';
import type { MacroSet } from '../syntax/index.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  STRING,
  TIMESTAMP,
  typeOf,
  UINT,
} from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import type { CelValue } from '../model/value.ts';
import { type Message, MESSAGES, NULL_VALUE } from './messages.ts';
import { TYPE_OF_TYPES } from '../syntax/type-text.ts';
import { isSameType } from './unification.ts';
import type { JsonStructs } from './unification.ts';

/** Provides struct types and their fields. Field names are spelled as in expressions. */
export interface TypeProvider {
  /** The type with a name such as `Object.spec`; undefined if unknown. */
  readonly findStruct: (name: string) => CelType | undefined;
  /** The type of a struct's field; undefined if there is no such field. */
  readonly fieldType: (struct: string, field: string) => CelType | undefined;
  /** Field names of a struct, for "did you mean". */
  readonly fieldNames?: (struct: string) => readonly string[];
  /** Structs that are JSON objects in evaluation. Default: none; all structs are distinct types, as in API servers. */
  readonly json?: JsonStructs;
  /** A constant, such as an enum value. */
  readonly findConstant?: (name: string) => Constant | undefined;
  /** Whether names that start with this word and a dot may be known. Default: true for all words. */
  readonly mayQualify?: (firstWord: string) => boolean;
}

interface Constant {
  readonly type: CelType;
  readonly value: CelValue;
}

/** The meaning of an identifier. */
export type Meaning =
  | { readonly kind: 'variable'; readonly name: string; readonly type: CelType }
  | { readonly kind: 'type'; readonly name: string; readonly type: CelType; readonly denotes: CelType }
  | { readonly kind: 'constant'; readonly name: string; readonly type: CelType; readonly value: CelValue };

export interface DeclaredFunction {
  readonly name: string;
  readonly overloads: readonly DeclaredOverload[];
}

/** An overload and the type variables of its signature. */
export interface DeclaredOverload {
  readonly overload: Overload;
  readonly typeParameters: readonly string[];
}

interface DeclarationOptions {
  readonly libraries: readonly Library[];
  readonly variables: Readonly<Record<string, CelType>>;
  readonly types?: TypeProvider | undefined;
  /** Macros of the environment, and functions of later Kubernetes versions with that version: for hints. */
  readonly macros?: MacroSet | undefined;
  readonly laterFunctions?: ReadonlyMap<string, number> | undefined;
  /** Excludes overloads from the environment, by id. */
  readonly isExcluded?: ((overloadId: string) => boolean) | undefined;
}

const LANGUAGE_TYPES: readonly (readonly [name: string, type: CelType])[] = [
  ['bool', BOOL],
  ['bytes', BYTES],
  ['double', DOUBLE],
  ['google.protobuf.Duration', DURATION],
  ['google.protobuf.Timestamp', TIMESTAMP],
  ['int', INT],
  ['list', listOf(DYN)],
  ['map', mapOf(DYN, DYN)],
  ['null_type', NULL],
  ['string', STRING],
  ['type', TYPE_OF_TYPES],
  ['uint', UINT],
];

/** The names that expressions of one environment can use. Immutable, so many expressions share it. */
export class Declarations {
  readonly functions: ReadonlyMap<string, DeclaredFunction>;
  readonly variables: ReadonlyMap<string, CelType>;
  /** Types by name; the provider may know more. */
  readonly namedTypes: ReadonlyMap<string, CelType>;
  readonly types: TypeProvider | undefined;
  readonly macros: MacroSet | undefined;
  readonly laterFunctions: ReadonlyMap<string, number>;
  /** First words of names with dots. Selections from other identifiers need no lookup as a qualified name. */
  readonly #qualifying: ReadonlySet<string>;

  constructor(options: DeclarationOptions) {
    this.functions = declareFunctions(options.libraries, options.isExcluded);
    this.variables = new Map(Object.entries(options.variables));
    this.namedTypes = declareTypes(options.libraries);
    this.types = options.types;
    this.macros = options.macros;
    this.laterFunctions = options.laterFunctions ?? new Map();
    this.#qualifying = firstWords([...this.functions.keys(), ...this.variables.keys(), ...this.namedTypes.keys()]);
  }

  /** Whether `word.…` can be a qualified name. */
  mayQualify(word: string): boolean {
    if (word.startsWith('.') || this.#qualifying.has(word)) {
      return true;
    }
    return this.types !== undefined && (this.types.mayQualify?.(word) ?? true);
  }

  /** The meaning of a name; a dot before it says that it is no variable of a macro. */
  findIdentifier(name: string): Meaning | undefined {
    return this.#findQualified(rootedName(name));
  }

  /** The message of protobuf with a name, and its full name. */
  findMessage(name: string): (Message & { readonly name: string }) | undefined {
    const message = MESSAGES.get(rootedName(name));
    return message === undefined ? undefined : { ...message, name: rootedName(name) };
  }

  findFunction(name: string): DeclaredFunction | undefined {
    return this.functions.get(rootedName(name));
  }

  #findQualified(name: string): Meaning | undefined {
    const variable = this.variables.get(name);
    if (variable !== undefined) {
      return { kind: 'variable', name, type: variable };
    }
    const denotes = this.types?.findStruct(name) ?? this.namedTypes.get(name);
    if (denotes !== undefined) {
      return { kind: 'type', name, type: typeOf(denotes), denotes };
    }
    const constant = name === NULL_VALUE ? { type: INT, value: 0 } : this.types?.findConstant?.(name);
    return constant === undefined ? undefined : { kind: 'constant', name, ...constant };
  }
}

function firstWords(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.filter((name) => name.includes('.')).map((name) => name.slice(0, name.indexOf('.'))));
}

function declareFunctions(
  libraries: readonly Library[],
  isExcluded: DeclarationOptions['isExcluded'],
): ReadonlyMap<string, DeclaredFunction> {
  const functions = new Map<string, { name: string; overloads: DeclaredOverload[] }>();
  for (const declaration of libraries.flatMap((library) => library.functions)) {
    const declared = functions.get(declaration.name) ?? { name: declaration.name, overloads: [] };
    addOverloads(declared.overloads, declaration, isExcluded);
    functions.set(declaration.name, declared);
  }
  return functions;
}

function addOverloads(
  overloads: DeclaredOverload[],
  declaration: FunctionDeclaration,
  isExcluded: DeclarationOptions['isExcluded'],
): void {
  for (const overload of declaration.overloads) {
    if (isExcluded?.(overload.id) === true) {
      continue;
    }
    if (overloads.some((other) => other.overload.id === overload.id)) {
      const message = `overload '${overload.id}' of function '${declaration.name}' is declared twice: expected one`;
      throw new CelError('environment-invalid', message);
    }
    overloads.push({ overload, typeParameters: typeParametersOf([...overload.parameters, overload.result]) });
  }
}

function declareTypes(libraries: readonly Library[]): ReadonlyMap<string, CelType> {
  const types = new Map(LANGUAGE_TYPES);
  for (const type of libraries.flatMap((library) => library.types ?? [])) {
    if (type.kind !== 'opaque' && type.kind !== 'struct') {
      continue; // Language types are already known.
    }
    const other = types.get(type.name);
    if (other !== undefined && !isSameType(other, type)) {
      throw new CelError(
        'environment-invalid',
        `type '${type.name}' is declared twice, in different ways: expected one`,
      );
    }
    types.set(type.name, type);
  }
  return types;
}

/** The distinct names of type variables in types. */
function typeParametersOf(types: readonly CelType[]): readonly string[] {
  return [...new Set(types.flatMap(parametersIn))];
}

function parametersIn(type: CelType): readonly string[] {
  switch (type.kind) {
    case 'parameter':
      return [type.name];
    case 'list':
      return parametersIn(type.element);
    case 'map':
      return [...parametersIn(type.key), ...parametersIn(type.value)];
    case 'opaque':
      return type.parameters.flatMap(parametersIn);
    case 'type':
      return parametersIn(type.of);
    default:
      return [];
  }
}
