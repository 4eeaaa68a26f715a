import { formatType } from '../syntax/type-text.ts';
import type { FunctionDeclaration, FunctionExample, Library, Overload } from '../model/library.ts';

/** A row of documentation: one overload of a function. */
export interface OverloadRow {
  readonly library: string;
  readonly name: string;
  /** `string.charAt(int) -> string` */
  readonly signature: string;
  /** First Kubernetes minor version with the function; undefined: part of the language, or not in any API server. */
  readonly since: number | undefined;
  readonly summary: string;
  readonly example: FunctionExample | undefined;
}

/** All functions with a name in these libraries. */
export function libraryTable(libraries: readonly Library[]): readonly OverloadRow[] {
  return libraries.flatMap((library) =>
    library.functions
      .filter(({ name }) => !name.startsWith('@'))
      .flatMap((declaration) => declaration.overloads.map((overload) => row(library, declaration, overload))),
  );
}

function row(library: Library, declaration: FunctionDeclaration, overload: Overload): OverloadRow {
  // Macros call these functions by internal names.
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
