// Writes the table of kinds in docs/embedded-kinds.md from the definitions in src/apiserver. `--check` writes nothing, and
// fails when the table is stale.
import { SERVED_KINDS } from '../src/apiserver/index.ts';
import type { ResourceDefinition } from '../src/apiserver/index.ts';
import { apiVersionOf } from '../src/resources/index.ts';
import { withSection, writeGenerated } from './generated-files.ts';

const BEGIN = '<!-- kinds: written by tools/embedded-kinds.ts -->';
const END = '<!-- end of kinds -->';
const PAGE = 'docs/embedded-kinds.md';

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
writeGenerated({
  files: new Map([[PAGE, withSection(PAGE, BEGIN, END, table)]]),
  source: 'src/apiserver',
  tool: 'tools/embedded-kinds.ts',
});
