import { formatType } from '../check/type-text.ts';
import type { FunctionDeclaration, FunctionExample, Library, Overload } from '../library.ts';

/** A line of documentation: one overload of a function. */
export interface FunctionRow {
  readonly library: string;
  readonly name: string;
  /** `string.charAt(int) -> string` */
  readonly signature: string;
  /** First minor version of Kubernetes that has it; undefined: the language itself, or no API server has it. */
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
  const types = parameters.map(formatType);
  const receiver = isMember ? `${types.shift()}.` : '';
  return `${receiver}${name}(${types.join(', ')}) -> ${formatType(result)}`;
}
