// The house rules on imports (docs/architecture.md): folders of src/ depend in one direction, through index.ts only.
import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../src', import.meta.url));

/** Top to bottom: a folder imports only from those before it. */
const ORDER = [
  'values',
  'go',
  'log',
  'threads',
  'files',
  'https',
  'metrics',
  'names',
  'cel',
  'wasm',
  'resources',
  'cluster',
  'apiserver',
  'runtime',
  'modules',
  'engine',
  'evaluation',
  'control',
  'server',
  'rollout',
  'lifecycle',
  'governance',
  'network-policy',
  'audit',
  'controller',
  'explain',
  'installation',
  'fleet',
  'console',
  'cli',
];

interface Import {
  readonly file: string;
  readonly line: number;
  readonly specifier: string;
}

/** Every import of the sources, type-only ones included. */
function allImports(): readonly Import[] {
  return globSync('**/*.ts', { cwd: source }).flatMap((file) =>
    readFileSync(join(source, file), 'utf8')
      .split('\n')
      .flatMap((text, index) => {
        const specifier = /(?:^(?:import|export|\}).* from |^import |\bimport\()['"]([^'"]+)['"]/.exec(text)?.[1];
        return specifier === undefined ? [] : [{ file, line: index + 1, specifier }];
      }),
  );
}

function relativeImports(): readonly Import[] {
  return allImports().filter(({ specifier }) => specifier.startsWith('.'));
}

const folderOf = (path: string): string => path.split(sep)[0] ?? '';

describe('imports between files of src/', () => {
  it('form no circle, not even of types', () => {
    const imports = new Map<string, Set<string>>();
    for (const { file, specifier } of relativeImports()) {
      imports.set(file, (imports.get(file) ?? new Set()).add(join(dirname(file), specifier)));
    }
    // Removes files that import none of the others, or that none of the others imports: circles are left.
    for (let before = -1; before !== imports.size;) {
      before = imports.size;
      for (const [file, targets] of imports) {
        const isImported = [...imports.values()].some((others) => others.has(file));
        if (!isImported || ![...targets].some((target) => imports.has(target))) {
          imports.delete(file);
        }
      }
    }
    assert.deepEqual([...imports.keys()], []);
  });
});

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

describe('imports between sub-folders of src/', () => {
  it('go one way only: no two folders import each other, not even a folder and what it contains', () => {
    const targets = new Map<string, Set<string>>();
    for (const { file, specifier } of relativeImports().filter((entry) => isProduction(entry.file))) {
      const [from, to] = [dirname(file), dirname(join(dirname(file), specifier))];
      // An index.ts says what a folder offers, and belongs to those who use it.
      if (from !== to && !file.endsWith('index.ts') && !to.includes('testing')) {
        targets.set(from, (targets.get(from) ?? new Set()).add(to));
      }
    }
    const pairs = [...targets].flatMap(([from, folders]) =>
      [...folders].filter((to) => from < to && targets.get(to)?.has(from) === true).map((to) => `${from} ${to}`),
    );
    assert.deepEqual(pairs, []);
  });
});

describe('the hub and the members of governance', () => {
  it('import nothing of each other: each runs alone', () => {
    const sides = ['hub', 'member'].map((side) => join('governance', side));
    const sideOf = (file: string): string | undefined => sides.find((side) => file.startsWith(side + sep));
    const ofSides = relativeImports().filter(({ file }) => sideOf(file) !== undefined);
    assert.ok(ofSides.length > 100);
    const crossing = ofSides.filter(({ file, specifier }) => {
      const target = sideOf(join(dirname(file), specifier));
      return target !== undefined && target !== sideOf(file);
    });
    assert.deepEqual(crossing, []);
  });
});

describe('packages that src/ imports', () => {
  it('are dependencies, which an installation has', () => {
    const { dependencies } = JSON.parse(readFileSync(join(source, '..', 'package.json'), 'utf8')) as {
      dependencies: object;
    };
    const published = allImports().filter(({ file }) => !/\.(?:test|fuzz)\.ts$|\btesting\//.test(file));
    const packages = published.filter(({ specifier }) => !/^(?:\.|node:)/.test(specifier));
    const nameOf = (specifier: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '';
    assert.ok(packages.length > 10, `expected imports of packages, found ${packages.length}`);
    assert.deepEqual(
      packages.filter(({ specifier }) => !Object.hasOwn(dependencies, nameOf(specifier))),
      [],
    );
  });
});

/** What a module loads with itself: not types, and not what it imports while it runs. */
const LOADING = /^(?:import|export)\s+(?!type\b)(?:[^'";]*?from\s+)?'(\.[^']+)'/gm;

const isProduction = (file: string): boolean => !/\.(?:test|fuzz)\.ts$|\/testing\//.test(file);

/** The lines of a text that are not only comment. */
const withoutComments = (text: string): string => text.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '');

/** The modules that are loaded with each production module, directly: paths below src/. */
function loadedModules(): ReadonlyMap<string, readonly string[]> {
  const files = globSync('**/*.ts', { cwd: source }).filter(isProduction);
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(source, file), 'utf8');
      return [file, [...text.matchAll(LOADING)].map(([, specifier = '']) => join(dirname(file), specifier))];
    }),
  );
}

/** All modules that load one of `targets`, however indirectly; the targets as well. */
function loadersOf(targets: (file: string) => boolean): readonly string[] {
  const modules = loadedModules();
  const loaders = new Set([...modules.keys()].filter(targets));
  for (let before = -1; before < loaders.size;) {
    before = loaders.size;
    for (const [file, loaded] of modules) {
      if (loaded.some((one) => loaders.has(one))) {
        loaders.add(file);
      }
    }
  }
  return [...loaders];
}

describe('the API server in this process', () => {
  const isApiServer = (file: string): boolean => folderOf(file) === 'apiserver';
  const loaders = loadersOf(isApiServer).filter((file) => !isApiServer(file));

  const users = [join('cli', 'start'), join('cli', 'governance', 'dryrun')];

  it('is loaded by `start` and `dryrun` alone, and not before they need a cluster', () => {
    assert.ok(
      loaders.includes(join('cli', 'start', 'run-apiserver.ts')),
      'expected run-apiserver.ts among the loaders',
    );
    const others = loaders.filter((file) => !users.includes(dirname(file)));
    assert.deepEqual(others, []);
    assert.ok(!loaders.includes(join('cli', 'start', 'start.ts')), 'start.ts loads it for a policies file as well');
    assert.ok(
      !loaders.includes(join('cli', 'governance', 'dryrun', 'dryrun.ts')),
      'dryrun.ts loads it before it has read its policies',
    );
  });

  it('is known to `start` and `dryrun` alone, by its types as well', () => {
    const importers = relativeImports().filter(
      ({ file, specifier }) => isProduction(file) && !isApiServer(file) && isApiServer(join(dirname(file), specifier)),
    );
    assert.deepEqual([...new Set(importers.map(({ file }) => dirname(file)))].toSorted(), users.toSorted());
  });
});

/** All modules that are loaded with one of `entries`, however indirectly. */
function loadedWith(entries: readonly string[]): readonly string[] {
  const modules = loadedModules();
  const loaded = new Set<string>();
  const add = (file: string): void => {
    if (!loaded.has(file)) {
      loaded.add(file);
      modules.get(file)?.forEach(add);
    }
  };
  entries.forEach(add);
  return [...loaded];
}

describe('the main thread of a policy server', () => {
  const ofFile = loadedWith([join('cli', 'serve', 'serve.ts')]);
  /** `replica.ts` is loaded later, in the same thread. */
  const loaded = loadedWith([...ofFile, join('server', 'replica', 'replica.ts')]);

  it('loads policies as data, and nothing that evaluates or compiles them', () => {
    assert.ok(loaded.includes(join('evaluation', 'pool', 'worker-pool.ts')), 'expected the pool among what is loaded');
    assert.deepEqual(loaded.filter((file) => ['engine', 'wasm', 'cel'].includes(folderOf(file))).toSorted(), [
      join('engine', 'definition', 'index.ts'),
      join('engine', 'definition', 'limits.ts'),
      join('engine', 'definition', 'policy-definition.ts'),
      join('engine', 'definition', 'policy-entry.ts'),
      join('engine', 'definition', 'policy-owner.ts'),
      join('engine', 'monitored-log-entry.ts'),
      join('engine', 'values', 'json-text.ts'),
      join('engine', 'verdict', 'observation.ts'),
    ]);
  });

  it('loads nothing of clusters for a policies file', () => {
    const folders = new Set(ofFile.map(folderOf));
    assert.deepEqual(
      ['resources', 'cluster', 'runtime', 'control'].filter((folder) => folders.has(folder)),
      [],
    );
  });
});

describe('the thread that answers host calls', () => {
  it('loads nothing that evaluates: it starts with the first policy that declares what it reads', () => {
    const loaded = loadedWith([join('evaluation', 'capabilities', 'capability-thread.ts')]);
    assert.ok(loaded.includes(join('engine', 'capabilities', 'async-capabilities.ts')), 'expected what answers');
    assert.deepEqual([...new Set(loaded.map(folderOf))].toSorted(), ['engine', 'evaluation', 'values']);
  });
});

/** Folders with parts that have an entry of their own. */
const IN_PARTS = ['audit', 'control', 'governance', 'installation', 'lifecycle', 'modules', 'network-policy'];

/** The folders of modules, without repetition; of those with parts, the parts. */
function foldersOf(modules: readonly string[]): readonly string[] {
  const part = (file: string): string => (IN_PARTS.includes(folderOf(file)) ? dirname(file) : folderOf(file));
  return [...new Set(modules.map((file) => part(file).replaceAll(sep, '/')))].toSorted();
}

describe('the thread that evaluates governance policies', () => {
  it('loads no CEL but quantities, and nothing of ports: it starts while a policy waits', () => {
    const loaded = loadedWith([join('governance', 'evaluation', 'evaluation-thread.ts')]);
    assert.ok(loaded.includes(join('governance', 'configuration', 'plan-evaluation.ts')), 'expected what compares');
    const folders = ['cel', 'https', 'files', 'cluster', 'runtime'];
    assert.deepEqual(loaded.filter((file) => folders.includes(folderOf(file))).toSorted(), [
      join('cel', 'model', 'library-value.ts'),
      join('cel', 'model', 'value.ts'),
      join('cel', 'quantity', 'index.ts'),
      join('cel', 'quantity', 'quantity-value.ts'),
    ]);
  });
});

describe('the supervisor of `start`', () => {
  const inStart = (...names: string[]): readonly string[] => names.map((name) => join('cli', 'start', name));
  const program = join('cli', 'program', 'main.ts');
  const before = loadedWith([program, ...inStart('start.ts', 'start-with-cluster.ts')]);
  /** `policy-roles.ts` is loaded while the API server starts. */
  const loaded = loadedWith([...before, ...inStart('policy-roles.ts')]);

  it('loads nothing that its processes do: it only starts them', () => {
    assert.ok(loaded.includes(join('cli', 'start', 'role-process.ts')), 'expected what starts a process');
    assert.deepEqual(foldersOf(loaded), [
      'cli',
      'cluster',
      'control/certificates',
      'files',
      'go',
      'governance/settings',
      'https',
      'lifecycle/grants',
      'log',
      'modules/reference',
      'modules/sources',
      'names',
      'network-policy/settings',
      'resources',
      'threads',
      'values',
    ]);
    assert.ok(loaded.length < 250, `expected less than 250 modules, found ${loaded.length}`);
  });

  it('loads nothing of clusters before it has started the API server', () => {
    const folders = ['cluster', 'resources', 'go'];
    assert.deepEqual(
      before.filter((file) => folders.includes(folderOf(file))),
      [],
    );
  });
});

describe('the API server of `start`', () => {
  it('loads no controllers, nothing of an installation but what it creates, and no findings and explanations', () => {
    const loaded = loadedWith(['apiserver.ts', 'run-apiserver.ts'].map((name) => join('cli', 'start', name)));
    assert.deepEqual(foldersOf(loaded), [
      'apiserver',
      'audit/access-rules',
      'cel',
      'cli',
      'cluster',
      'control/access-rules',
      'control/certificates',
      'engine',
      'files',
      'go',
      'governance/access-rules',
      'https',
      'installation/objects',
      'lifecycle/access-rules',
      // Rules and names without a controller.
      'lifecycle/certificates',
      'lifecycle/policy-servers',
      'log',
      'names',
      'network-policy/access-rules',
      'resources',
      'threads',
      'values',
      'wasm',
    ]);
    assert.ok(loaded.length < 600, `expected less than 600 modules, found ${loaded.length}`);
  });
});

/** Sub-folders with an `index.ts` of their own, so that only their users load them. */
const APART: Readonly<Record<string, readonly string[]>> = {
  values: ['yaml'],
  go: ['patterns', 'templates'],
  resources: ['decoding', 'kind-validation', 'match-conditions', 'validation', 'structured-merge'],
};

describe('what index.ts loads', () => {
  for (const [folder, apart] of Object.entries(APART)) {
    it(`of src/${folder} is not ${apart.join(', ')}, which have entries of their own`, () => {
      const isApart = (file: string): boolean => apart.some((name) => file.startsWith(join(folder, name) + sep));
      const loaders = loadersOf(isApart).filter((file) => !isApart(file));
      assert.ok(loaders.length > 0);
      assert.deepEqual(
        loaders.filter((file) => folderOf(file) === folder),
        [],
      );
    });
  }
});

describe('JSON from outside', () => {
  const parsesJson = (text: string): boolean =>
    /\bJSON\s*(?:\??\.\s*parse\b|\[)|(?:=|[(,])\s*JSON\s*[;,)]/.test(withoutComments(text));

  it('is parsed by parseJson only, which reads keys right that JSON.parse may not', () => {
    const callers = globSync('**/*.ts', { cwd: source }).filter(
      (file) => isProduction(file) && parsesJson(readFileSync(join(source, file), 'utf8')),
    );
    assert.deepEqual(callers, [join('values', 'json.ts')]);
  });

  it('is noticed in whichever way it is parsed', () => {
    for (const text of [
      'JSON.parse(text)',
      'texts.map(JSON.parse)',
      "JSON['parse'](text)",
      'const { parse } = JSON;',
      'JSON\n  .parse(text)',
    ]) {
      assert.ok(parsesJson(text), text);
    }
    assert.ok(!parsesJson('// As JSON.parse does.\nJSON.stringify(value)'));
  });
});

describe('files and YAML from outside', () => {
  /** What reads files, with the names that imports give them. */
  const READS = /\b(?:readFile|readFileSync|createReadStream|open|openSync|openAsBlob|readv?Sync|readLines)\b/;
  const production = globSync('**/*.ts', { cwd: source })
    .filter(isProduction)
    .map((file) => ({ file, text: withoutComments(readFileSync(join(source, file), 'utf8')) }));

  const readsFiles = (text: string): boolean =>
    [...text.matchAll(/^import ([^;]*?) from '(?:node:)?fs(?:\/promises)?';/gm)].some(
      ([, names = '']) => READS.test(names) || !names.includes('{'),
    ) || /import\(['"](?:node:)?fs/.test(text);

  /** All others read by src/files, which refuses pipes and devices, and has a limit of bytes. */
  const OWN_FILES: Readonly<Record<string, string>> = {
    'files/read-file.ts': 'is that reader',
    'files/kept-file.ts': 'state of this process',
    'apiserver/embedded/store/sqlite-journal.ts': 'creates the journal of the embedded cluster',
    'apiserver/gateway/protobuf/message-data.ts': 'a file of the package',
    'cli/governance/dryrun/dryrun.ts': 'opens a log that it writes',
    'cli/package-version.ts': 'a file of the package',
    'cli/install/install-flags.ts': 'a file of the package',
    'cli/start/data-folder.ts': 'files that it wrote itself',
    'cli/start/credentials.ts': 'tokens that it wrote itself',
    'cli/start/local-cluster.ts': 'certificates that it wrote itself',
    'control/certificates/local-certificates.ts': 'certificates that it wrote itself',
    'engine/network-policy/builtin-catalogue.ts': 'files of the package',
    'evaluation/loading/loading-record.ts': 'state of this process',
    'evaluation/loading/quarantine.ts': 'state of this process',
    'modules/reference/builtin-module.ts': 'a file of the package',
    'modules/cache/module-cache.ts': 'the cache, whose files are named by digests of their content',
    'modules/cache/module-copies.ts': 'the copies, whose files are named by digests of their content',
    'modules/cache/modules-in-use.ts': 'state of this process',
    'modules/oci/bundle.ts': 'opens a tarball that it writes',
    'resources/kubernetes/openapi-data.ts': 'a file of the package',
    'threads/processor-time.ts': 'files of the kernel',
    'wasm/instrumentation/trial-process.ts': 'standard input, which its parent writes',
  };

  it('are read by one reader, but for files of the product itself', () => {
    const readers = production.filter(({ text }) => readsFiles(text)).map(({ file }) => file.replaceAll(sep, '/'));
    assert.deepEqual(readers.toSorted(), Object.keys(OWN_FILES).toSorted());
  });

  it('are parsed by one parser, but for what a sandboxed policy parses', () => {
    const parsers = production
      .filter(({ text }) => /import \{[^}]*\b(?:load|loadAll|parseEvents)\b[^}]*\} from 'js-yaml'/.test(text))
      .map(({ file }) => file.replaceAll(sep, '/'));
    assert.deepEqual(parsers.toSorted(), ['values/yaml/yaml-text.ts', 'wasm/guests/opa/yaml.ts']);
  });

  it('are noticed in whichever way they are read', () => {
    for (const text of [
      "import { readFile } from 'node:fs/promises';",
      "import {\n  stat,\n  readFileSync as read,\n} from 'node:fs';",
      "import * as fs from 'node:fs';",
      "import fs from 'fs/promises';",
      "const { open } = await import('node:fs/promises');",
    ]) {
      assert.ok(readsFiles(text), text);
    }
    assert.ok(!readsFiles("import { stat } from 'node:fs/promises';"));
  });
});

describe('other programs', () => {
  it('are started by few files: an author of what they read could choose the program', () => {
    const starters = allImports().filter(
      ({ file, specifier }) => isProduction(file) && specifier.endsWith('child_process'),
    );
    assert.deepEqual([...new Set(starters.map(({ file }) => file.replaceAll(sep, '/')))].toSorted(), [
      'cli/netpol/git-command.ts',
      'cli/start/role-process.ts',
      'cluster/kubernetes/exec-plugin.ts',
      'modules/oci/docker-config.ts',
      'wasm/instrumentation/trial-compilation.ts',
    ]);
  });
});

describe('a static field that constructs its own class', () => {
  /** A private member, to the end of its line or of its body. */
  const PRIVATE = /^ {2}(?:readonly |async |get |set |\*)*#\w+(?:.*\{\n[^]*?^ {2}\}|.*)/gm;

  /**
   * When a private member names the class, the compiler writes an alias for that name everywhere, and sets it after the
   * static fields: the built package fails with `_a is not a constructor`.
   */
  const breaksInBuild = (text: string): boolean =>
    [...text.matchAll(/^(?:export )?(?:abstract )?class (\w+)[^]*?^\}/gm)].some(
      ([body, name = '']) =>
        new RegExp(`^ {2}static [^(=]*=[^;]*\\bnew ${name}\\b`, 'm').test(body) &&
        [...body.matchAll(PRIVATE)].some(([member]) => new RegExp(`\\bnew ${name}\\b|\\b${name}\\.`).test(member)),
    );

  it('is in no class whose private members name it', () => {
    const wrong = globSync('**/*.ts', { cwd: source }).filter((file) =>
      breaksInBuild(withoutComments(readFileSync(join(source, file), 'utf8'))),
    );
    assert.deepEqual(wrong, []);
  });

  it('is noticed there', () => {
    const none = 'export class A {\n  static readonly NONE: A = new A();\n';
    assert.ok(breaksInBuild(`${none}  #copy(): A {\n    return new A();\n  }\n}`));
    assert.ok(breaksInBuild(`${none}  get #none(): A {\n    return A.NONE;\n  }\n}`));
    assert.ok(breaksInBuild(`${none}  readonly #copy = (): A => new A();\n}`));
    assert.ok(
      !breaksInBuild(
        `${none}  copy(): A {\n    return new A();\n  }\n  #add(other: A): A {\n    return other;\n  }\n}`,
      ),
    );
    assert.ok(!breaksInBuild('class A {\n  #copy(): A {\n    return new A();\n  }\n}'));
  });
});

describe('docs/architecture.md', () => {
  const page = readFileSync(fileURLToPath(new URL('../docs/architecture.md', import.meta.url)), 'utf8');

  it('names files and folders that exist, but for those that it says are to come', () => {
    const [present = '', future = ''] = page.split('## Where new features go');
    const named = [...present.matchAll(/`(src\/[\w./-]+)`/g)].map(([, path = '']) => path);
    assert.ok(named.length > 40, `expected the page to name files, found ${named.length}`);
    assert.deepEqual(
      named.filter((path) => !existsSync(join(source, '..', path))),
      [],
    );
    const planned = new Set(ORDER.map((folder) => `src/${folder}`));
    const wrong = [...future.matchAll(/`(src\/[\w./-]+)`/g)]
      .map(([, path = '']) => path)
      .filter((path) => !planned.has(path) && !existsSync(join(source, '..', path)));
    assert.deepEqual(wrong, []);
  });

  it('names the shapes of a policy where they are declared', () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| `(src\/\S+\.ts)` \|/gm)];
    assert.ok(rows.length > 10, `expected the table of shapes, got ${rows.length} rows`);
    for (const [, shape = '', file = ''] of rows) {
      assert.match(
        readFileSync(join(source, '..', file), 'utf8'),
        new RegExp(`^export (?:interface|type) ${shape}\\b`, 'm'),
      );
    }
  });

  it('names every folder of src', () => {
    const folders = readdirSync(source).filter((name) => !page.includes(`| \`src/${name}\` |`));
    assert.deepEqual(folders, []);
  });
});

describe('src/lifecycle', () => {
  it('knows nothing of the policy server: what both need of each other is src/control', () => {
    const importers = relativeImports().filter(
      ({ file, specifier }) => folderOf(file) === 'lifecycle' && folderOf(join(dirname(file), specifier)) === 'server',
    );
    assert.deepEqual(importers, []);
  });
});
