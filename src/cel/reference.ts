import { COMPREHENSION_LIBRARY, OPTIONAL_LIBRARY, standardLibrary } from './evaluate/index.ts';
import { KUBERNETES_LIBRARIES, libraryTable, MUTATION_LIBRARIES } from './libraries/index.ts';
import type { FunctionRow } from './libraries/index.ts';

/** Every function that expressions can call by its name, in the order in which documentation has them. */
export function languageReference(): readonly FunctionRow[] {
  const libraries = [
    standardLibrary(),
    OPTIONAL_LIBRARY,
    COMPREHENSION_LIBRARY,
    ...KUBERNETES_LIBRARIES,
    ...MUTATION_LIBRARIES,
  ];
  return libraryTable(libraries).filter(({ name }) => /^[a-zA-Z][\w.]*$/.test(name));
}
