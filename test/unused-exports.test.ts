// Exports that nothing needs: what no other file imports is private to its file, but for types of what it exports.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Names that are imported from a file; `*`: all of them may be. */
type Uses = Map<string, Set<string>>;

const STATEMENT = /^(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\* as \w+|\*)\s+from\s+'(\.[^']+)'/gm;
/** `const { X } = await import('./x.ts')`, and what takes the whole module. */
const DYNAMIC = /(?:\{([^{}]*)\}\s*=\s*(?:\(\s*)?await\s+)?\bimport\(\s*'(\.[^']+)'/g;
const VALUE = /^export (?:async )?(?:const|function\*?|class) (\w+)/gm;
const TYPE = /^export (?:interface|type) (\w+)/gm;
const DECLARED_TYPE = /^export (?:abstract )?(?:interface|type|class|enum) (\w+)/gm;
const LISTED = /^export (?:type )?\{([^}]*)\}/gm;

/** The names in braces, as their file exports them: `type X`, `X as Y`. */
function namesIn(list: string): readonly string[] {
  return list
    .replace(/\/\/.*|[{}]/g, '')
    .split(',')
    .map((one) => one.trim().replace(/^type /, ''))
    .filter((one) => one !== '');
}

function usesIn(file: string, text: string, uses: Uses): void {
  const use = (specifier: string, names: readonly string[]): void => {
    const target = join(dirname(file), specifier);
    const known = uses.get(target) ?? new Set();
    uses.set(target, known);
    for (const name of names) {
      known.add(name);
    }
  };
  for (const [, what = '', specifier = ''] of text.matchAll(STATEMENT)) {
    use(specifier, what.startsWith('{') ? namesIn(what).map((one) => one.replace(/ as .*/, '')) : ['*']);
  }
  for (const [, list, specifier = ''] of text.matchAll(DYNAMIC)) {
    use(specifier, list === undefined ? ['*'] : namesIn(list).map((one) => one.replace(/:.*/s, '')));
  }
}

/** Without types that the file itself mentions: they may be a part of something else that it exports. */
function exportsOf(text: string): readonly string[] {
  const namesOf = (pattern: RegExp): readonly string[] => [...text.matchAll(pattern)].map(([, name = '']) => name);
  const types = namesOf(TYPE).filter((name) => text.match(new RegExp(`\\b${name}\\b`, 'g'))?.length === 1);
  const listed = namesOf(LISTED).flatMap((list) => namesIn(list).map((one) => one.replace(/.* as /, '')));
  return [...namesOf(VALUE), ...types, ...listed];
}

/** `FILE NAME` of each export that none of the other files imports. */
function unusedExports(texts: ReadonlyMap<string, string>): readonly string[] {
  const uses: Uses = new Map();
  for (const [file, text] of texts) {
    usesIn(file, text, uses);
  }
  return [...texts].flatMap(([file, text]) => {
    const used = uses.get(file) ?? new Set();
    return used.has('*') ? [] : exportsOf(text).flatMap((name) => (used.has(name) ? [] : [`${file} ${name}`]));
  });
}

/** A list of what another file exports. */
const REEXPORT = /^export (?:type )?(\{[^}]*\}) from '(\.[^']+)';$/gm;
/** A test, or a tool of tests. */
const TEST = /\.(?:test|fuzz)\.ts$|^test\/|\/testing\//;

/** What only tests call, and why that is not in a folder `testing/`. */
const FOR_TESTS: Readonly<Record<string, string>> = {
  'src/metrics/metrics-page.ts pageText': 'tests of other folders read whole pages',
};

/** `FILE NAME` of each value of src that its file only declares, and that nothing imports but tests. */
function exportsForTests(texts: ReadonlyMap<string, string>): readonly string[] {
  const production = [...texts].filter(([file]) => !TEST.test(file));
  const uses: Uses = new Map();
  for (const [file, text] of production) {
    usesIn(file, text.replace(REEXPORT, ''), uses);
  }
  /** Where what a file exports is listed, by file and name. */
  const listedIn = new Map<string, { readonly file: string; readonly name: string }[]>();
  for (const [file, text] of production) {
    for (const [, names = '', specifier = ''] of text.matchAll(REEXPORT)) {
      for (const one of namesIn(names)) {
        const key = `${join(dirname(file), specifier)} ${one.replace(/ as .*/, '')}`;
        listedIn.set(key, [...(listedIn.get(key) ?? []), { file, name: one.replace(/.* as /, '') }]);
      }
    }
  }
  const isUsed = (file: string, name: string): boolean =>
    uses.get(file)?.has(name) === true ||
    uses.get(file)?.has('*') === true ||
    listedIn.get(`${file} ${name}`)?.some((list) => isUsed(list.file, list.name)) === true;
  return production.flatMap(([file, text]) => {
    const code = text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '');
    const isDeclaredOnly = (name: string): boolean => code.match(new RegExp(`\\b${name}\\b`, 'g'))?.length === 1;
    return file.startsWith('src/')
      ? [...text.matchAll(VALUE)].flatMap(([, name = '']) =>
          !isUsed(file, name) && isDeclaredOnly(name) ? [`${file} ${name}`] : [],
        )
      : [];
  });
}

/** `NAME: FILES` of each type that several files export. */
function sharedNames(texts: ReadonlyMap<string, string>): readonly string[] {
  const declared = new Map<string, string[]>();
  for (const [file, text] of texts) {
    for (const [, name = ''] of text.matchAll(DECLARED_TYPE)) {
      declared.set(name, [...(declared.get(name) ?? []), file]);
    }
  }
  return [...declared].flatMap(([name, found]) => (found.length > 1 ? [`${name}: ${found.join(', ')}`] : []));
}

describe('exports of the sources', () => {
  const files = globSync('{src,test,bench,tools}/**/*.{ts,mts,mjs}', {
    cwd: root,
    // What these export is for those who call a module.
    exclude: ['test/fixtures/guests/**'],
  }).map((file) => file.replaceAll('\\', '/'));
  const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));

  it('are imported by another file, a test at least', () => {
    assert.ok(files.length > 1_000, `expected the sources, found ${files.length} files`);
    assert.deepEqual(unusedExports(texts), []);
  });

  it('give each type a name of its own, so that a name says which one it is', () => {
    assert.deepEqual(
      sharedNames(
        new Map([...texts].filter(([file]) => file.startsWith('src/') && !/\.test\.ts$|\/testing\//.test(file))),
      ),
      [],
    );
  });

  it('are there for more than tests', () => {
    assert.deepEqual(exportsForTests(texts).toSorted(), Object.keys(FOR_TESTS).toSorted());
    const declared = 'export function a() {}\n/** Not a. */\nexport const b = 1;\nexport const c = b;\n';
    const forTests = (importer: string): readonly string[] =>
      exportsForTests(
        new Map([
          ['src/x.ts', declared],
          [importer, "import { a, c } from './x.ts';"],
        ]),
      );
    assert.deepEqual(forTests('src/x.test.ts'), ['src/x.ts a', 'src/x.ts c']);
    assert.deepEqual(forTests('src/y.ts'), []);
    const listed = new Map([
      ['src/x/x.ts', declared],
      ['src/x/index.ts', "export { a, c as d } from './x.ts';"],
      ['src/y.ts', "import { d } from './x/index.ts';"],
      ['src/y.test.ts', "import { a } from './x/index.ts';"],
    ]);
    assert.deepEqual(exportsForTests(listed), ['src/x/x.ts a']);
  });

  it('are found in whichever way they are exported and imported', () => {
    const shared = `export const a = 1;\nexport async function b() {}\nexport interface C {}\nexport interface G {}\nexport type H = G;\nexport {\n  d,\n  type E as F,\n} from './y.ts';\n`;
    const unusedWith = (...others: readonly string[]): readonly string[] =>
      unusedExports(new Map([['x.ts', shared], ...others.map((text, index) => [`z${index}.ts`, text] as const)]));
    assert.deepEqual(unusedWith(), ['x.ts a', 'x.ts b', 'x.ts C', 'x.ts H', 'x.ts d', 'x.ts F']);
    assert.deepEqual(unusedWith("import {\n  a,\n  type C,\n} from './x.ts';", "export { b as c } from './x.ts';"), [
      'x.ts H',
      'x.ts d',
      'x.ts F',
      'z1.ts c',
    ]);
    assert.deepEqual(unusedWith("const { a, b: c } = await import('./x.ts');"), [
      'x.ts C',
      'x.ts H',
      'x.ts d',
      'x.ts F',
    ]);
    for (const whole of ["import * as x from './x.ts';", "const x = import('./x.ts');", "export * from './x.ts';"]) {
      assert.deepEqual(unusedWith(whole), []);
    }
  });
});
