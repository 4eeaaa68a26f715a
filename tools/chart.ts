// Writes the Helm charts in deploy/charts/, the plain manifests in deploy/manifests/, and the table of values in docs/install.md
// from src/installation. `--check` writes nothing, and fails when a file is stale.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commentedObjects, HELM_PARTS, INSTALL_PARTS } from '../src/installation/install-objects.ts';
import {
  isSection,
  type ValueDeclaration,
  valuesDeclaration,
  type ValueSection,
} from '../src/installation/objects/install-values.ts';
import { ALERTS } from '../src/installation/objects/monitoring-objects.ts';
import { defaultValues } from '../src/installation/read-values.ts';
import { MIN_KUBERNETES } from '../src/installation/requirements.ts';
import { commentedYaml, wrappedComment } from './commented-yaml.ts';
import { root, writeGenerated } from './generated-files.ts';
import { templateForEach, templateText, templateValues } from './helm-template.ts';

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const declaration = valuesDeclaration(version);

const WRITTEN_BY = '# Written by tools/chart.ts from src/installation.';
const CHART = 'deploy/charts/portcullis';
const CRDS_CHART = 'deploy/charts/portcullis-crds';
const MANIFESTS = 'deploy/manifests/portcullis.yaml';
const PAGE = 'docs/install.md';
const NAMESPACE = 'portcullis';
/** Parts that are not in the main chart: Helm creates the namespace, and the other chart has the CRDs. */
const ELSEWHERE: ReadonlySet<string> = new Set(['namespace', 'crds']);

function chartFile(name: string, description: string): string {
  return `${WRITTEN_BY}\n${commentedYaml({
    apiVersion: 'v2',
    name,
    description,
    type: 'application',
    version,
    appVersion: version,
    kubeVersion: `>=${MIN_KUBERNETES.join('.')}.0-0`,
    keywords: ['admission', 'kubewarden', 'policy', 'webassembly', 'webhook'],
  })}`;
}

/** The templates: each part of an installation, with Helm expressions in place of values. */
function templates(): [string, string][] {
  const context = { namespace: templateValues.namespace, values: templateValues.of(declaration) };
  return [...INSTALL_PARTS.filter(({ name }) => !ELSEWHERE.has(name)), ...HELM_PARTS].map(
    ({ name, when, is, each, objects }) => {
      const text = objects(context)
        .map((object) =>
          each === undefined ? templateText(object, declaration) : templateForEach(object, declaration, each),
        )
        .join(each === undefined ? '---\n' : '');
      const condition = is === undefined ? `.Values.${when}` : `eq .Values.${when} ${JSON.stringify(is)}`;
      const whole = when === undefined ? text : `{{- if ${condition} }}\n${text}{{- end }}\n`;
      return [`${CHART}/templates/${name}.yaml`, `${WRITTEN_BY}\n${whole}`];
    },
  );
}

/** Adds the annotation that keeps Helm from deleting the definitions, and with them all policies. */
function crdTemplates(): [string, string][] {
  const definitions = INSTALL_PARTS.find(({ name }) => name === 'crds')?.objects({
    namespace: NAMESPACE,
    values: defaultValues(version),
  });
  return (definitions ?? []).map((definition) => {
    const { metadata } = definition;
    const kept = { ...definition, metadata: { ...metadata, annotations: { 'helm.sh/resource-policy': 'keep' } } };
    return [`${CRDS_CHART}/templates/${metadata.name}.yaml`, `${WRITTEN_BY}\n${templateText(kept, declaration)}`];
  });
}

function describe({ description, choices }: ValueDeclaration): string {
  return choices === undefined ? description : `${description} One of: ${choices.join(', ')}.`;
}

function valuesText({ values }: ValueSection, indent = ''): string {
  return Object.entries(values)
    .map(([name, value]) => {
      if (isSection(value)) {
        return `${wrappedComment(value.description, indent)}${indent}${name}:\n${valuesText(value, `${indent}  `)}`;
      }
      const lines = commentedYaml({ [name]: value.default }).replaceAll(/^(?=.)/gm, indent);
      return wrappedComment(describe(value), indent) + lines;
    })
    .join(indent === '' ? '\n' : '');
}

function schemaOf(value: ValueDeclaration | ValueSection): object {
  const { description } = value;
  if (isSection(value)) {
    const names = Object.keys(value.values);
    const properties = Object.fromEntries(Object.entries(value.values).map(([name, one]) => [name, schemaOf(one)]));
    return { description, type: 'object', additionalProperties: false, required: names, properties };
  }
  const { choices, minimum, pattern } = value;
  const types = {
    boolean: { type: 'boolean' },
    integer: { type: 'integer', minimum },
    list: { type: 'array', items: { type: 'object' } },
    object: { type: 'object' },
    texts: { type: 'array', items: { type: 'string' } },
    text: { type: 'string', enum: choices, pattern },
  } as const;
  return { description, ...types[value.type] };
}

/** Forbids cert-manager's Certificates for Secrets that the controller writes: both would overwrite them for ever. */
const CERTIFICATES_OF_ONE = {
  not: {
    required: ['mode', 'certManager'],
    properties: {
      mode: { const: 'own' },
      certManager: { required: ['enabled'], properties: { enabled: { const: true } } },
    },
  },
} as const;

/** With `global`, which Helm gives to every subchart. */
function valuesSchema(): object {
  const schema = schemaOf(declaration) as { properties: { certificates: object } };
  Object.assign(schema.properties.certificates, CERTIFICATES_OF_ONE);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...schema,
    properties: { ...schema.properties, global: { type: 'object' } },
  };
}

function tableRows({ values }: ValueSection, path = ''): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    isSection(value)
      ? tableRows(value, `${path}${name}.`)
      : [
          `| \`${path}${name}\` | \`${JSON.stringify(value.default)}\` | ${describe(value).replaceAll('|', String.raw`\|`)} |`,
        ],
  );
}

/** Replaces the table between two marks of a page. */
function withTable(page: string, mark: string, header: string, rows: readonly string[]): string {
  const [begin, end] = [`<!-- ${mark}: written by tools/chart.ts -->\n`, `<!-- end of ${mark} -->`];
  const [before, after] = [page.indexOf(begin), page.indexOf(end)];
  if (before < 0 || after < before) {
    throw new Error(`${PAGE}: expected the lines ${begin.trim()} and ${end}`);
  }
  const rule = header.replaceAll(/[^|]+/g, '---');
  const table = [header, rule, ...rows].join('\n');
  return `${page.slice(0, before + begin.length)}\n${table}\n\n${page.slice(after)}`;
}

const alertRows = ALERTS.map(
  ({ name, severity, when, lasting, summary, whatToDo }) =>
    `| \`${name}\` (${severity}) | \`${when.replaceAll('|', String.raw`\|`)}\` for ${lasting} | ${summary} ${whatToDo} |`,
);

function page(): string {
  const text = readFileSync(join(root, PAGE), 'utf8');
  const withValues = withTable(text, 'values', '| value | default | meaning |', tableRows(declaration));
  return withTable(withValues, 'alerts', '| alert | when | meaning, and what to do |', alertRows);
}

/** What `portcullis install` applies by default, with comments. */
function manifests(): string {
  const context = { namespace: NAMESPACE, values: defaultValues(version) };
  return commentedObjects(context).map(commentedYaml).join('---\n');
}

const NOTES = `Portcullis {{ .Chart.AppVersion }} is in namespace {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/portcullis-controller
  kubectl get policyservers
  portcullis doctor --namespace {{ .Release.Namespace }}

Pods in this namespace may use the rights of the controller. Restrict it to Portcullis:

  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted --overwrite

Uninstalling the release first removes its webhooks, and keeps policies and their kinds. To remove the objects that the controller
created:

  portcullis uninstall --namespace {{ .Release.Namespace }}
`;

const files = new Map<string, string>([
  [
    `${CHART}/Chart.yaml`,
    chartFile('portcullis', 'A Kubernetes policy engine whose policies have a status, versions and a way back'),
  ],
  [`${CHART}/values.yaml`, `${WRITTEN_BY}\n\n${valuesText(declaration)}`],
  [`${CHART}/values.schema.json`, `${JSON.stringify(valuesSchema(), undefined, 2)}\n`],
  [`${CHART}/templates/NOTES.txt`, NOTES],
  ...templates(),
  [
    `${CRDS_CHART}/Chart.yaml`,
    chartFile('portcullis-crds', 'The kinds of Portcullis: upgraded with this chart, kept when it is uninstalled'),
  ],
  [`${CRDS_CHART}/values.yaml`, '# There is nothing to choose.\n{}\n'],
  ...crdTemplates(),
  [MANIFESTS, `${WRITTEN_BY}\n${manifests()}`],
  [PAGE, page()],
]);

writeGenerated({
  files,
  folders: ['deploy/charts', 'deploy/manifests'],
  source: 'src/installation',
  tool: 'tools/chart.ts',
});
