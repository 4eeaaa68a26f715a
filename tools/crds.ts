// Writes what follows from the schemas of our own kinds: their CustomResourceDefinitions in deploy/crds/ and a page for each in
// docs/reference/. `--check` writes nothing and fails when a file has another content.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dump } from 'js-yaml';
import { apiVersionOf, customResourceDefinition, OWN_KINDS } from '../src/resources/index.ts';
import type { OwnKind } from '../src/resources/index.ts';
import { referenceIndex, referencePage } from './reference-page.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const yaml = (value: unknown): string => dump(value, { lineWidth: -1, noRefs: true });

/** The example of a kind as people would write it. */
function exampleOf(kind: OwnKind): string {
  return yaml({ apiVersion: apiVersionOf(kind), kind: kind.kind, ...kind.declaration.example });
}

const files = new Map<string, string>([
  ...OWN_KINDS.map((kind): [string, string] => [
    `deploy/crds/${kind.resource}.${kind.group}.yaml`,
    `# Written by tools/crds.ts from src/resources/policies.\n${yaml(customResourceDefinition(kind))}`,
  ]),
  ...OWN_KINDS.map((kind): [string, string] => [
    `docs/reference/${kind.kind.toLowerCase()}.md`,
    referencePage(kind, exampleOf(kind)),
  ]),
  ['docs/reference/README.md', referenceIndex(OWN_KINDS)],
]);

/** Files that nothing is written to any more. */
const left = ['deploy/crds', 'docs/reference'].flatMap((folder) =>
  listed(folder)
    .map((name) => `${folder}/${name}`)
    .filter((file) => !files.has(file)),
);

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(join(root, folder));
  } catch {
    return [];
  }
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(join(root, file), 'utf8');
  } catch {
    return undefined;
  }
}

const differing = [...files].filter(([file, content]) => contentOf(file) !== content).map(([file]) => file);
if (process.argv.includes('--check')) {
  const wrong = [...differing, ...left];
  if (wrong.length > 0) {
    console.error(`${wrong.join(', ')}: not what src/resources/policies says; run \`node tools/crds.ts\``);
    process.exit(1);
  }
  console.log('deploy/crds and docs/reference are what src/resources/policies says');
} else {
  for (const file of differing) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), files.get(file) ?? '');
    console.log(file);
  }
  for (const file of left) {
    rmSync(join(root, file));
    console.log(`${file} removed`);
  }
}
