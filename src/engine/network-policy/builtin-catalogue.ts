import { readdirSync, readFileSync } from 'node:fs';
import { Catalogue } from './catalogue.ts';
import { parseCatalogue } from './read-catalogue.ts';

const FOLDER = new URL('catalogue/', import.meta.url);

let catalogue: Catalogue | undefined;

/** The catalogue that is part of this product: a file of `catalogue/` for each provider. Read once in each thread. */
export function builtinCatalogue(): Catalogue {
  catalogue ??= readBuiltinCatalogue();
  return catalogue;
}

function readBuiltinCatalogue(): Catalogue {
  const files = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.yaml'))
    .toSorted()
    .map((name) => ({ name, text: readFileSync(new URL(name, FOLDER), 'utf8') }));
  // A provider is read after the one that it inherits from.
  const inheriting = files.filter(({ text }) => /^inherits:/m.test(text));
  return [...files.filter((file) => !inheriting.includes(file)), ...inheriting].reduce(
    (before, { name, text }) => before.extended(parseCatalogue(text, name, before)),
    new Catalogue([]),
  );
}
