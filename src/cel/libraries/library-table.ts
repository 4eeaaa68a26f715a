import type { FunctionDeclaration, FunctionExample, Library, Overload } from '../library.ts';
import type { CelType } from '../type.ts';

/** A line of documentation: one overload of a function. */
export interface FunctionRow {
  readonly library: string;
  readonly name: string;
  /** `string.charAt(int) -> string` */
  readonly signature: string;
  /** First minor version of Kubernetes that has it; undefined: none has. */
  readonly since: number | undefined;
  readonly summary: string;
  readonly example: FunctionExample | undefined;
}

/** All functions of libraries that expressions call by their names. */
export function libraryTable(libraries: readonly Library[]): readonly FunctionRow[] {
  return libraries.flatMap((library) =>
    library.functions
      .filter(({ name }) => !name.startsWith('@'))
      .flatMap((declaration) => declaration.overloads.map((overload) => row(library, declaration, overload))),
  );
}

function row(library: Library, declaration: FunctionDeclaration, overload: Overload): FunctionRow {
  // Macros call these by names that cannot be written.
  const name = declaration.name.replace('math.@min', 'math.least').replace('math.@max', 'math.greatest');
  return {
    library: library.name,
    name,
    signature: signature(name, overload),
    since: library.since,
    summary: declaration.summary ?? '',
    example: declaration.example,
  };
}

function signature(name: string, { isMember, parameters, result }: Overload): string {
  const types = parameters.map(typeText);
  const receiver = isMember ? `${types.shift()}.` : '';
  return `${receiver}${name}(${types.join(', ')}) -> ${typeText(result)}`;
}

function typeText(type: CelType): string {
  switch (type.kind) {
    case 'list':
      return `list(${typeText(type.element)})`;
    case 'map':
      return `map(${typeText(type.key)}, ${typeText(type.value)})`;
    case 'opaque':
      return type.parameters.length === 0 ? type.name : `${type.name}(${type.parameters.map(typeText).join(', ')})`;
    case 'struct':
    case 'parameter':
      return type.name;
    case 'type':
      return `type(${typeText(type.of)})`;
    default:
      return type.kind;
  }
}
