import { COMPREHENSION_LIBRARY, OPTIONAL_LIBRARY, standardLibrary } from './evaluate/index.ts';
import { KUBERNETES_LIBRARIES, libraryTable, MUTATION_LIBRARIES } from './libraries/index.ts';
import type { OverloadRow } from './libraries/index.ts';
import type { Library } from './model/library.ts';

/** The libraries of all functions, in the order of the documentation. */
export function allLibraries(): readonly Library[] {
  return [standardLibrary(), OPTIONAL_LIBRARY, COMPREHENSION_LIBRARY, ...KUBERNETES_LIBRARIES, ...MUTATION_LIBRARIES];
}

/** All functions with a name, in the order of the documentation. */
export function languageReference(): readonly OverloadRow[] {
  return libraryTable(allLibraries()).filter(({ name }) => /^[a-zA-Z][\w.]*$/.test(name));
}
