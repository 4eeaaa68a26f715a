// The matrix of providers and features: symbols for an overview, words for one provider, and Markdown.
import {
  type Defect,
  defectText,
  type Effect,
  EFFECT_TEXTS,
  type Feature,
  FEATURE_TEXTS,
  FEATURES,
  type Provider,
  type ProviderSupport,
  requirementText,
  type SupportRow,
  usesText,
} from '../../engine/network-policy/index.ts';
import { oneLine } from '../table.ts';

/** Columns of a terminal. */
const WIDTH = 80;
/** Of the overview's first column: what the symbols leave of the width. */
const NAME_WIDTH = 30;

/** Heads of the overview, of two characters, in the order of the features. */
const SHORT: Readonly<Record<Feature, string>> = {
  Enforcement: 'NP',
  Ingress: 'In',
  Egress: 'Eg',
  NamespaceSelector: 'NS',
  NamespaceAndPodSelector: 'N+',
  PortWithoutNumber: 'P*',
  NamedPort: 'Pn',
  EndPort: 'P-',
  PortCount: 'P#',
  SCTP: 'SC',
  IPBlock: 'IP',
  IPBlockExcept: 'Ex',
  IPBlockOfPods: 'Po',
  IPBlockOfNodes: 'No',
  IPv6: 'v6',
  HostNetworkPods: 'HN',
};

const SYMBOLS = { yes: '✔', no: '✘', partly: '◐', setting: '⚙', unknown: '?', none: '–' } as const;
type Symbol = keyof typeof SYMBOLS;

const LEGEND =
  '✔ yes   ✘ no   ◐ some uses, or up to a limit   ⚙ depends on a setting\n? unknown   – nothing is enforced';

/** An overview of the newest versions, or those that are named. */
export function matrixText(providers: readonly ProviderSupport[]): string {
  const head = ['PROVIDER'.padEnd(NAME_WIDTH), ...FEATURES.map((feature) => SHORT[feature])].join(' ').trimEnd();
  const rows = providers.map((support) => {
    const cells = FEATURES.map((feature) => SYMBOLS[symbolOf(support, feature)].padEnd(2));
    return [oneLine(nameOf(support), NAME_WIDTH).padEnd(NAME_WIDTH), ...cells].join(' ').trimEnd();
  });
  const words = FEATURES.map((feature) => `${SHORT[feature]} ${FEATURE_TEXTS[feature]}`);
  return `${[head, ...rows, '', LEGEND, '', ...words.map((line) => oneLine(line, WIDTH))].join('\n')}\n`;
}

function nameOf({ instance: { name, version } }: ProviderSupport): string {
  return version === undefined ? name : `${name} ${version}`;
}

function symbolOf(support: ProviderSupport, feature: Feature): Symbol {
  const [enforcement] = support.provider.features.Enforcement ?? [];
  if (feature !== 'Enforcement' && support.provider.features[feature] === undefined) {
    return enforcement?.support === 'Unsupported' ? 'none' : 'unknown';
  }
  const row = support.row(feature);
  return 'status' in row ? 'unknown' : symbolOfRow(row);
}

function symbolOfRow({ support, requires, limit }: SupportRow): Symbol {
  switch (support) {
    case 'Supported':
      return requires !== undefined ? 'setting' : limit?.per === 'CIDR' ? 'partly' : 'yes';
    case 'Partial':
      return 'partly';
    case 'Unsupported':
      return 'no';
    case 'Unknown':
      return 'unknown';
    default:
      return support satisfies never;
  }
}

/** All versions of a provider, or the named one, in words. */
export function providerText(support: ProviderSupport): string {
  const { title, name, latest, state } = support.provider;
  const until = latest === undefined ? '' : `, examined up to ${latest}`;
  const lines = FEATURES.flatMap((feature) => [
    `${feature}: ${FEATURE_TEXTS[feature]}`,
    ...rowsOf(support, feature).map((row) =>
      wrapped(`${row.versions.text}  ${SYMBOLS[symbolOfRow(row)]} ${wordsOf(row)}`),
    ),
  ]);
  const defects = support.defects.map((defect) => wrapped(defectWords(defect)));
  const faults = defects.length === 0 ? [] : ['', 'Faults of some versions:', ...defects];
  return `${[`${title} (${name}), ${state}${until}`, '', ...lines, ...faults].join('\n')}\n`;
}

function defectWords(defect: Defect): string {
  const { features, when, depends, effect, evidence } = defect;
  const parts = [
    `${features.join(', ')}: ${defectText(defect)}`,
    ...(when === undefined ? [] : [`only ${usesText(when)}`]),
    ...(depends === undefined ? [] : [`if ${depends}`]),
    effectText(effect),
    `evidence: ${evidence}`,
  ];
  return oneLine(parts.join('; '));
}

function rowsOf(support: ProviderSupport, feature: Feature): readonly SupportRow[] {
  if (support.instance.version === undefined) {
    return support.provider.features[feature] ?? [];
  }
  const row = support.row(feature);
  return 'status' in row ? [] : [row];
}

function wordsOf({
  support,
  effect,
  requires = [],
  when = [],
  depends,
  limit,
  caution,
  note,
  evidence,
}: SupportRow): string {
  const parts = [
    support,
    ...(when.length === 0 ? [] : [`not for ${usesText(when)}`]),
    ...(depends === undefined ? [] : [`not if ${depends}`]),
    ...requires.map(({ setting }) => `depends on ${setting}`),
    ...(limit === undefined ? [] : [`at most ${limit.entries} per ${limit.per}`]),
    ...(effect === undefined
      ? []
      : [support === 'Unsupported' ? effectText(effect) : `otherwise ${effectText(effect)}`]),
    ...(caution === undefined ? [] : [caution.replace(/\.$/, '')]),
    ...(note === undefined ? [] : [note.replace(/\.$/, '')]),
    `evidence: ${evidence}`,
  ];
  return oneLine(parts.join('; '));
}

function effectText(effect: Effect): string {
  return `${effect}: ${EFFECT_TEXTS[effect]}`;
}

/** Lines of at most 80 characters, indented. */
function wrapped(text: string): string {
  const lines: string[] = [];
  let line = ' ';
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > WIDTH && line.trim() !== '') {
      lines.push(line);
      line = '     ';
    }
    line += ` ${word}`;
  }
  return [...lines, line].join('\n');
}

/** Providers as rows, features as columns: symbols with effects, for all versions. */
export function matrixMarkdown(providers: readonly ProviderSupport[]): string {
  const head = `| provider | ${FEATURES.join(' | ')} |\n|---|${'---|'.repeat(FEATURES.length)}`;
  const rows = providers.map((support) => {
    const { title, latest } = support.provider;
    const cells = FEATURES.map((feature) => markdownCell(support.provider.features[feature]));
    return `| ${title}${latest === undefined ? '' : ` (to ${latest})`} | ${cells.join(' | ')} |`;
  });
  return `${[head, ...rows].join('\n')}\n`;
}

function markdownCell(rows: readonly SupportRow[] = []): string {
  const texts = rows.map((row) => {
    const versions = row.versions.text === '*' ? '' : `${markdownText(row.versions.text)} `;
    const symbol = symbolOfRow(row);
    const effect = row.effect === undefined ? '' : ` ${row.effect}`;
    const isInferred = row.evidence === 'Inferred' && row.support !== 'Unknown' ? '*' : '';
    return `${versions}${SYMBOLS[symbol]}${effect}${isInferred}`.replaceAll('*', String.raw`\*`);
  });
  return texts.length === 0 ? SYMBOLS.none : texts.join('<br>');
}

function markdownText(text: string): string {
  return text
    .replaceAll('>=', '≥')
    .replaceAll('<', '&lt;')
    .replaceAll('|', String.raw`\|`);
}

/** A row for each fault of each provider. */
export function defectsMarkdown(providers: readonly Provider[]): string {
  const rows = providers.flatMap(({ title, defects = [] }) =>
    defects.map((defect) => `| ${[title, ...defectCells(defect)].map(markdownText).join(' | ')} |`),
  );
  return `| provider | versions | feature | what happens | if | effect |\n|---|---|---|---|---|---|\n${rows.join('\n')}\n`;
}

function defectCells({ ids, versions, features, when, settings = [], depends, summary, effect }: Defect): string[] {
  const conditions = [
    (when ?? []).map((one) => (typeof one === 'string' ? one : one.join(' + '))).join(', '),
    ...settings.map(requirementText),
    depends ?? '',
  ].filter((text) => text !== '');
  const what = ids.length === 0 ? summary : `${summary} (${ids.join(', ')})`;
  return [versions.text, features.join(', '), what, conditions.join('; '), effect];
}

/** The catalogue for programs. */
export function matrixData(providers: readonly ProviderSupport[]): object {
  return {
    providers: providers.map(({ provider: { settings, features, defects = [], ...provider } }) => ({
      ...provider,
      settings: Object.fromEntries(settings),
      features: Object.fromEntries(
        Object.entries(features).map(([feature, rows]) => [feature, rows.map(withVersionText)]),
      ),
      ...(defects.length === 0 ? {} : { defects: defects.map(withVersionText) }),
    })),
  };
}

function withVersionText({ versions, ...rest }: SupportRow | Defect): object {
  return { versions: versions.text, ...rest };
}
