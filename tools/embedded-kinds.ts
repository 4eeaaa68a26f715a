// Writes the table of kinds in docs/embedded-kinds.md from the definitions in src/apiserver. `--check` writes nothing and
// fails when the page has another table.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SERVED_KINDS } from '../src/apiserver/index.ts';
import type { ResourceDefinition } from '../src/apiserver/index.ts';
import { apiVersionOf } from '../src/resources/index.ts';

const BEGIN = '<!-- kinds: written by tools/embedded-kinds.ts -->';
const END = '<!-- end of kinds -->';
const page = fileURLToPath(new URL('../docs/embedded-kinds.md', import.meta.url));

function tableRow(definition: ResourceDefinition): string {
  const { kind, resource, shortNames, namespaced, hasStatus, scale, verbs } = definition;
  const names = [resource, ...shortNames].map((name) => `\`${name}\``).join(', ');
  const subresources = [...(hasStatus ? ['status'] : []), ...(scale === undefined ? [] : ['scale'])].join(', ');
  const cells = [kind, names, namespaced ? 'yes' : 'no', subresources, verbs?.join(', ') ?? ''];
  return `| ${cells.join(' | ')} |`;
}

const groups = Map.groupBy(SERVED_KINDS, apiVersionOf);
const table = Array.from(groups, ([apiVersion, kinds]) =>
  [
    `### ${apiVersion}`,
    '',
    '| kind | names | in namespaces | subresources | verbs |',
    '|---|---|---|---|---|',
    ...kinds.map(tableRow),
    '',
  ].join('\n'),
).join('\n');
const before = readFileSync(page, 'utf8');
const [head = '', rest = ''] = before.split(BEGIN);
const [, tail = ''] = rest.split(END);
const after = `${head}${BEGIN}\n\n${table}\n${END}${tail}`;

if (!process.argv.includes('--check')) {
  writeFileSync(page, after);
} else if (after === before) {
  console.log('docs/embedded-kinds.md has the kinds of src/resources');
} else {
  console.error('docs/embedded-kinds.md does not have the kinds of src/resources: run `node tools/embedded-kinds.ts`');
  process.exit(1);
}
