// Writes the table of functions in docs/cel.md from the declarations of src/cel. `--check` writes nothing, and fails when the
// table is stale.
import { allowedSince, languageReference } from '../src/cel/index.ts';
import type { OverloadRow } from '../src/cel/index.ts';
import { withSection, writeGenerated } from './generated-files.ts';

const BEGIN = '<!-- functions: written by tools/cel-reference.ts -->';
const END = '<!-- end of functions -->';
const PAGE = 'docs/cel.md';

const code = (text: string): string => `\`${text.replaceAll('|', String.raw`\|`)}\``;

/** Rows of one function: the signatures together, one summary, one example. */
function tableRow(rows: readonly OverloadRow[]): string {
  const [{ since, summary, example } = { since: undefined, summary: '', example: undefined }] = rows;
  const signatures = rows.map(({ signature }) => code(signature)).join('<br>');
  const version = since === undefined || since === 0 ? '' : `1.${allowedSince(since)}`;
  const shown = example === undefined ? '' : `${code(example.expression)} → ${code(example.result)}`;
  return `| ${signatures} | ${version} | ${summary} | ${shown} |`;
}

function section(library: string, rows: readonly OverloadRow[]): string {
  const functions = Map.groupBy(rows, ({ name, summary }) => `${name} ${summary}`);
  return [
    `### ${library}`,
    '',
    '| function | since | | for example |',
    '|---|---|---|---|',
    ...Array.from(functions.values(), tableRow),
    '',
  ].join('\n');
}

const sections = Map.groupBy(languageReference(), ({ library }) => library);
const table = Array.from(sections, ([library, rows]) => section(library, rows)).join('\n');
writeGenerated({
  files: new Map([[PAGE, withSection(PAGE, BEGIN, END, table)]]),
  source: 'src/cel',
  tool: 'tools/cel-reference.ts',
});
