// The house rules on imports (docs/architecture.md): folders of src/ depend in one direction, through index.ts only.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../src', import.meta.url));

/** Top to bottom: a folder imports only from those before it. */
const ORDER = [
  'cel',
  'wasm',
  'resources',
  'cluster',
  'apiserver',
  'runtime',
  'modules',
  'engine',
  'server',
  'lifecycle',
  'governance',
  'network-policy',
  'audit',
  'console',
  'cli',
];

interface Import {
  readonly file: string;
  readonly line: number;
  readonly specifier: string;
}

/** Every relative import of the sources, type-only ones included. */
function relativeImports(): readonly Import[] {
  return globSync('**/*.ts', { cwd: source }).flatMap((file) =>
    readFileSync(join(source, file), 'utf8')
      .split('\n')
      .flatMap((text, index) => {
        const specifier = /(?:from|import\(?)\s*['"](\.[^'"]*)['"]/.exec(text)?.[1];
        return specifier === undefined ? [] : [{ file, line: index + 1, specifier }];
      }),
  );
}

const folderOf = (path: string): string => path.split(sep)[0] ?? '';

describe('imports between folders of src/', () => {
  const crossing = relativeImports()
    .map((entry) => ({ ...entry, target: relative(source, join(source, dirname(entry.file), entry.specifier)) }))
    .filter((entry) => folderOf(entry.target) !== folderOf(entry.file));

  it('finds imports to judge', () => {
    assert.ok(crossing.length > 10, `expected the sources to import across folders, found ${crossing.length} imports`);
  });

  it('go one way only', () => {
    const wrong = crossing.filter(({ file, target }) => {
      const [from, to] = [ORDER.indexOf(folderOf(file)), ORDER.indexOf(folderOf(target))];
      return from === -1 || to === -1 || to >= from;
    });
    assert.deepEqual(wrong, []);
  });

  it('enter a folder through its index.ts', () => {
    const deep = crossing.filter(({ target }) => !target.endsWith(`${sep}index.ts`));
    assert.deepEqual(deep, []);
  });

  it('stay below src/', () => {
    assert.deepEqual(
      crossing.filter(({ target }) => target.startsWith('..')),
      [],
    );
  });
});
