// Writes the CustomResourceDefinitions of our own kinds in deploy/crds/, those of reports in deploy/openreports/ and deploy/wgpolicyk8s/, and a page for each kind in docs/reference/, from their
// schemas. `--check` writes nothing, and fails when a file is stale.
import { dump } from 'js-yaml';
import {
  apiVersionOf,
  customResourceDefinition,
  ALL_KINDS,
  REPORT_FORMATS,
  reportDefinitions,
} from '../src/resources/index.ts';
import type { OwnKind } from '../src/resources/index.ts';
import { writeGenerated } from './generated-files.ts';
import { referenceIndex, referencePage } from './reference-page.ts';

/** Whose fields the kinds of reports have, by their format. */
const REPORTS = [
  ['openreports', 'OpenReports 0.2.1 (https://openreports.io'],
  ['wgpolicyk8s', 'PolicyReport v1alpha2 (https://github.com/kubernetes-retired/wg-policy-prototypes'],
] as const;

const yaml = (value: unknown): string => dump(value, { lineWidth: -1, noRefs: true });

/** The example of a kind in YAML. */
function exampleOf(kind: OwnKind): string {
  return yaml({ apiVersion: apiVersionOf(kind), kind: kind.kind, ...kind.declaration.example });
}

const files = new Map<string, string>([
  ...ALL_KINDS.map((kind): [string, string] => [
    `deploy/crds/${kind.resource}.${kind.group}.yaml`,
    `# Written by tools/crds.ts from src/resources.\n${yaml(customResourceDefinition(kind))}`,
  ]),
  ...REPORTS.flatMap(([name, fields]) =>
    reportDefinitions(REPORT_FORMATS[name]).map((definition): [string, string] => [
      `deploy/${name}/${definition.metadata.name}.yaml`,
      `# Written by tools/crds.ts from src/resources. The fields are those of ${fields}, Apache-2.0).\n${yaml(definition)}`,
    ]),
  ),
  ...ALL_KINDS.map((kind): [string, string] => [
    `docs/reference/${kind.kind.toLowerCase()}.md`,
    referencePage(kind, exampleOf(kind)),
  ]),
  ['docs/reference/README.md', referenceIndex(ALL_KINDS)],
]);

writeGenerated({
  files,
  folders: ['deploy/crds', 'deploy/openreports', 'deploy/wgpolicyk8s', 'docs/reference'],
  source: 'src/resources',
  tool: 'tools/crds.ts',
});
