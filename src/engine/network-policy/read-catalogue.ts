import { dnsLabelProblems } from '../../names/index.ts';
import { EngineError } from '../values/errors.ts';
import { describeValue, FieldReader, fieldPathText } from '../values/field-reader.ts';
import type { FieldFault } from '../values/field-reader.ts';
import { nearestKey, textOf, textPosition } from '../../values/index.ts';
import { parseYaml, YamlSyntaxError } from '../../values/yaml/index.ts';
import { Catalogue, EVIDENCES, SUPPORTS } from './catalogue.ts';
import type {
  AgentPattern,
  Defect,
  Detection,
  KubeletVersions,
  PortLimit,
  ProviderExtension,
  ProviderSetting,
  SettingRequirement,
  SupportRow,
  VersionObject,
} from './catalogue.ts';
import { EFFECTS, FEATURE_TRAITS, FEATURES, TRAITS } from './feature.ts';
import type { Effect, Feature, UsePattern } from './feature.ts';
import { parseProviderVersion } from './provider-version.ts';
import { coverageFaults, parseVersionRange } from './version-range.ts';
import type { VersionRange } from './version-range.ts';

/** Longest catalogue file: a hundred times the file of the provider with the most rows. */
export const MAX_CATALOGUE_LENGTH = 1024 * 1024;
/** Providers of a file: ten times those that exist. */
const MAX_PROVIDERS = 200;
/** Rows of a feature: more than the minor versions of any provider. */
export const MAX_ROWS = 64;
/** Faults of a provider: more than the advisories of any. Each is tried on each use of a feature, once. */
export const MAX_DEFECTS = 128;
/** Characters of a text, so that it fits into a message of a condition. */
export const MAX_TEXT = 1000;

const PROVIDER_KEYS = [
  'name',
  'title',
  'controllerName',
  'os',
  'state',
  'latest',
  'checked',
  'inherits',
  'detect',
  'settings',
  'features',
  'defects',
];
const DEFECT_KEYS = [
  'ids',
  'features',
  'versions',
  'when',
  'settings',
  'depends',
  'effect',
  'summary',
  'evidence',
  'sources',
  'checked',
];
const ROW_KEYS = [
  'versions',
  'support',
  'effect',
  'effects',
  'requires',
  'when',
  'depends',
  'limit',
  'caution',
  'cautionWhen',
  'note',
  'evidence',
  'sources',
  'checked',
];
/** Texts with a form, also for the schema. */
export const CATALOGUE_PATTERNS = {
  day: /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/,
  controllerName: /^[a-z0-9.-]{1,253}\/[A-Za-z0-9/._~-]{1,253}$/,
  source: /^https:\/\/\S{4,500}$/,
  advisory: /^(?:CVE-\d{4}-\d{4,}|GHSA(?:-[0-9a-z]{4}){3})$/,
  versions:
    /^(?:\*|(?:<\d+(?:\.\d+){0,2}|>=\d+(?:\.\d+){0,2}(?: <\d+(?:\.\d+){0,2})?)(?: \|\| (?:<\d+(?:\.\d+){0,2}|>=\d+(?:\.\d+){0,2}(?: <\d+(?:\.\d+){0,2})?))*)$/,
  leastVersion: /^(?:>=)?v?\d{1,9}(?:\.\d{1,9}){0,2}$/,
} as const;
const UNKNOWN_RANGE: VersionRange = { text: '*', spans: [{}] };

/**
 * Reads catalogue files: YAML or JSON, a document for each provider. Providers of `known`, and of
 * documents before, may be extended and inherited.
 * @throws EngineError `catalogue-invalid`, which lists every mistake with file and path
 */
export function parseCatalogue(text: string, file: string, known?: Catalogue): readonly ProviderExtension[] {
  const documents = documentsOf(text, file).filter((document) => document !== null && document !== undefined);
  if (documents.length > MAX_PROVIDERS) {
    throw invalid([`${file}: expected at most ${MAX_PROVIDERS} providers, got ${documents.length}`]);
  }
  const mistakes: string[] = [];
  const entries: ProviderExtension[] = [];
  let before = known ?? new Catalogue([]);
  for (const [index, document] of documents.entries()) {
    const place = documents.length === 1 ? file : `${file}, document ${index + 1}`;
    const entry = readProvider(document, before, ({ path, key, message }) =>
      mistakes.push([place, fieldPathText(path) || key, message].filter(Boolean).join(': ')),
    );
    before = before.extended([entry]);
    entries.push(entry);
  }
  if (mistakes.length > 0) {
    throw invalid(mistakes);
  }
  return entries;
}

function documentsOf(text: string, file: string): readonly unknown[] {
  if (text.length > MAX_CATALOGUE_LENGTH) {
    throw invalid([`${file}: expected at most ${MAX_CATALOGUE_LENGTH} characters, got ${text.length}`]);
  }
  try {
    return parseYaml(text);
  } catch (error) {
    if (error instanceof YamlSyntaxError) {
      const { line, column } = textPosition(text, error.offset);
      throw invalid([`${file}:${line}:${column}: not YAML: ${error.message}`], error);
    }
    throw error;
  }
}

function invalid(mistakes: readonly string[], cause?: unknown): EngineError {
  return new EngineError('catalogue-invalid', mistakes.join('\n'), cause === undefined ? undefined : { cause });
}

/** Reads the declaration of a provider, of a file or of an object. Every mistake is reported. */
export function readProvider(
  value: unknown,
  known: Catalogue | undefined,
  report: (fault: FieldFault) => void,
): ProviderExtension {
  const fields = new FieldReader(value, report);
  fields.knownKeys(PROVIDER_KEYS, { owner: 'a provider' });
  const name = fields.requiredText('name');
  if (name !== '' && dnsLabelProblems(name).length > 0) {
    fields.fault('name', `expected lower-case letters, digits and -, got ${describeValue(name)}`);
  }
  const inherits = fields.someText('inherits');
  if (inherits !== undefined && known?.find(inherits) === undefined) {
    fields.fault('inherits', `expected the name of a provider before this one, got ${describeValue(inherits)}`);
  }
  const latest = fields.someText('latest');
  if (latest !== undefined && parseProviderVersion(latest) === undefined) {
    fields.fault('latest', `expected a version such as 1.20.2, got ${describeValue(latest)}`);
  }
  const checked = day(fields);
  const settings = readSettings(fields.inside('settings'));
  const inherited = [name, inherits ?? ''].flatMap((one) => [...(known?.find(one)?.settings.keys() ?? [])]);
  refuseUnknownSettings(value, [...settings.keys(), ...inherited], report);
  return {
    name,
    ...present({
      inherits,
      title: shortText(fields, 'title'),
      controllerName: controllerName(fields),
      os: fields.oneOf('os', ['linux', 'windows']),
      state: fields.oneOf('state', ['Active', 'Retiring', 'Abandoned']),
      latest,
      checked,
      detect: readDetection(fields.inside('detect')),
      defects: fields.has('defects') ? readDefects(fields, checked) : undefined,
    }),
    settings,
    features: readFeatures(fields.inside('features'), checked),
  };
}

/** A setting with a wrong name would be one that is never known. */
function refuseUnknownSettings(value: unknown, known: readonly string[], report: (fault: FieldFault) => void): void {
  // What else is wrong is reported where it is read.
  const fields = new FieldReader(value, () => undefined);
  const rows = FEATURES.flatMap((feature) => fields.inside('features')?.each(feature) ?? []);
  const users = [
    ...rows.flatMap((row) => [...row.each('requires'), row.inside('limit') ?? []].flat()),
    ...fields.each('defects').flatMap((defect) => defect.each('settings')),
  ];
  for (const { name, path } of users.map((one) => ({ name: one.text('setting') ?? '', path: one.path }))) {
    if (name !== '' && !known.includes(name)) {
      const nearest = nearestKey(name, known);
      const hint = nearest === undefined ? '' : `: did you mean ${nearest}?`;
      const message = `expected a key of the "settings" of the provider, got ${describeValue(name)}${hint}`;
      report({ code: 'invalid-value', key: 'setting', message, path: [...path, 'setting'] });
    }
  }
}

/** The fields that are not undefined. */
function present<Fields extends object>(fields: Fields): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Fields]?: Exclude<Fields[Key], undefined>;
  };
}

function controllerName(fields: FieldReader): string | undefined {
  const text = fields.someText('controllerName');
  if (text !== undefined && !CATALOGUE_PATTERNS.controllerName.test(text)) {
    fields.fault('controllerName', `expected DOMAIN/PATH, such as cilium.io/agent, got ${describeValue(text)}`);
  }
  return text;
}

function day(fields: FieldReader): string | undefined {
  const text = fields.someText('checked');
  if (text !== undefined && !CATALOGUE_PATTERNS.day.test(text)) {
    fields.fault('checked', `expected a day such as 2026-11-21, got ${describeValue(text)}`);
  }
  return text;
}

function shortText(fields: FieldReader, key: string): string | undefined {
  const text = fields.someText(key);
  if (text !== undefined && text.length > MAX_TEXT) {
    fields.fault(key, `expected at most ${MAX_TEXT} characters, got ${text.length}`);
  }
  return text;
}

/** Patterns of a provider: more than any needs, since each is tried on every pod. */
export const MAX_PATTERNS = 32;

const DETECTION_KEYS = [
  'agents',
  'kubelet',
  'kubeletVersions',
  'images',
  'object',
  'replaces',
  'configMap',
  'arguments',
  'argumentsOf',
  'containers',
];

function readDetection(fields: FieldReader | undefined): Detection | undefined {
  if (fields === undefined) {
    return undefined;
  }
  fields.knownKeys(DETECTION_KEYS, { owner: 'detect' });
  const agents = fields.each('agents');
  if (agents.length > MAX_PATTERNS) {
    fields.fault('agents', `expected at most ${MAX_PATTERNS} patterns, got ${agents.length}`);
  }
  return {
    agents: agents.slice(0, MAX_PATTERNS).map(readAgent),
    ...present({
      kubelet: fields.someText('kubelet'),
      kubeletVersions: fields.has('kubeletVersions')
        ? fields.each('kubeletVersions').slice(0, MAX_PATTERNS).map(readKubeletVersions)
        : undefined,
      images: someTexts(fields, 'images'),
      object: readVersionObject(fields.inside('object')),
      replaces: someTexts(fields, 'replaces'),
      configMap: fields.someText('configMap'),
      arguments: someTexts(fields, 'arguments'),
      argumentsOf: fields.someText('argumentsOf'),
      containers: someTexts(fields, 'containers'),
    }),
  };
}

function readKubeletVersions(fields: FieldReader): KubeletVersions {
  fields.knownKeys(['kubelet', 'namespace', 'version', 'sources'], { owner: 'a version' });
  const namespace = present({ namespace: fields.someText('namespace') });
  const version = fields.requiredText('version');
  if (version !== '' && !CATALOGUE_PATTERNS.leastVersion.test(version)) {
    fields.fault('version', `expected a version such as 1.9.0 or ">=1.9.0", got ${describeValue(version)}`);
  }
  readSources(fields, 'Inferred');
  return { kubelet: range(fields, 'kubelet') ?? UNKNOWN_RANGE, ...namespace, version };
}

function readVersionObject(fields: FieldReader | undefined): VersionObject | undefined {
  fields?.knownKeys(['apiVersion', 'kind', 'resource', 'name', 'field'], { owner: 'object' });
  return (
    fields && {
      apiVersion: fields.requiredText('apiVersion'),
      kind: fields.requiredText('kind'),
      resource: fields.requiredText('resource'),
      name: fields.requiredText('name'),
      field: fields.requiredText('field'),
    }
  );
}

function readAgent(fields: FieldReader): AgentPattern {
  fields.knownKeys(['container', 'images', 'registry', 'daemonSets', 'os', 'beside'], { owner: 'an agent' });
  return {
    container: fields.requiredText('container'),
    ...present({
      images: someTexts(fields, 'images'),
      registry: fields.someText('registry'),
      daemonSets: someTexts(fields, 'daemonSets'),
      os: fields.oneOf('os', ['linux', 'windows']),
      beside: fields.someText('beside'),
    }),
  };
}

function someTexts(fields: FieldReader, key: string): readonly string[] | undefined {
  return fields.has(key) ? fields.texts(key).slice(0, MAX_PATTERNS) : undefined;
}

function readSettings(fields: FieldReader | undefined): ReadonlyMap<string, ProviderSetting> {
  const settings = new Map<string, ProviderSetting>();
  for (const name of fields?.keys ?? []) {
    const setting = fields?.inside(name);
    setting?.knownKeys(['default', 'fixed', 'where'], { owner: 'a setting' });
    const fixed = setting?.boolean('fixed');
    settings.set(name, {
      default: setting?.text('default') ?? '',
      where: setting?.requiredText('where') ?? '',
      ...(fixed === undefined ? {} : { fixed }),
    });
  }
  return settings;
}

function readFeatures(
  fields: FieldReader | undefined,
  checked: string | undefined,
): Partial<Record<Feature, readonly SupportRow[]>> {
  const features: Partial<Record<Feature, readonly SupportRow[]>> = {};
  fields?.knownKeys(FEATURES, { owner: 'features' });
  for (const feature of FEATURES) {
    if (fields?.has(feature) === true) {
      features[feature] = readRows(fields, feature, checked);
    }
  }
  return features;
}

function readRows(fields: FieldReader, feature: Feature, checked: string | undefined): readonly SupportRow[] {
  const rows = fields.each(feature);
  if (rows.length === 0 || rows.length > MAX_ROWS) {
    fields.fault(feature, `expected 1 to ${MAX_ROWS} rows, got ${rows.length}`);
    return [];
  }
  const ranges = rows.map((row) => range(row));
  const known = ranges.filter((one) => one !== undefined);
  if (known.length === ranges.length) {
    coverageFaults(known).forEach((fault) => fields.fault(feature, fault));
  }
  return rows.map((row, index) => readRow(row, feature, ranges[index] ?? UNKNOWN_RANGE, checked));
}

function readDefects(fields: FieldReader, checked: string | undefined): readonly Defect[] {
  const defects = fields.each('defects');
  if (defects.length > MAX_DEFECTS) {
    fields.fault('defects', `expected at most ${MAX_DEFECTS} faults, got ${defects.length}`);
  }
  return defects.slice(0, MAX_DEFECTS).map((defect) => readDefect(defect, checked));
}

function readDefect(defect: FieldReader, checked: string | undefined): Defect {
  defect.knownKeys(DEFECT_KEYS, { owner: 'a defect' });
  for (const key of ['features', 'effect', 'evidence'].filter((one) => !defect.has(one))) {
    defect.missing(key);
  }
  const evidence = defect.oneOf('evidence', EVIDENCES) ?? 'Inferred';
  refuseEmpty(defect, 'features', 'feature');
  const features = readNames(defect, 'features', FEATURES);
  return {
    ids: readAdvisories(defect),
    features,
    versions: range(defect) ?? UNKNOWN_RANGE,
    ...present({
      when: readUses(defect, 'when', features),
      settings: defect.has('settings') ? defect.each('settings').map(readRequirement) : undefined,
      depends: shortText(defect, 'depends'),
    }),
    effect: defect.oneOf('effect', EFFECTS) ?? 'FailOpen',
    summary: requiredShortText(defect, 'summary'),
    evidence,
    sources: readSources(defect, evidence),
    checked: dayOfCheck(defect, checked),
  };
}

function readAdvisories(defect: FieldReader): readonly string[] {
  const ids = defect.texts('ids');
  for (const [index, id] of ids.entries()) {
    if (!CATALOGUE_PATTERNS.advisory.test(id)) {
      defect.fault('ids', `expected CVE-YEAR-NUMBER or GHSA-xxxx-xxxx-xxxx, got ${describeValue(id)}`, index);
    }
  }
  return ids;
}

function dayOfCheck(fields: FieldReader, checked: string | undefined): string {
  const date = day(fields) ?? checked;
  if (date === undefined) {
    fields.faultHere('expected the day of the check in "checked", here or at the provider');
  }
  return date ?? '';
}

function requiredShortText(fields: FieldReader, key: string): string {
  const text = shortText(fields, key);
  if (text === undefined) {
    fields.missing(key);
  }
  return text ?? '';
}

function range(row: FieldReader, key = 'versions'): VersionRange | undefined {
  const text = row.requiredText(key);
  const parsed = parseVersionRange(text);
  if (parsed === undefined && text !== '') {
    row.fault(
      key,
      `expected *, >=1.2.0, <1.2.0, ">=1.2.0 <1.3.0" or several of these with || between them, got ${describeValue(text)}`,
    );
  }
  return parsed;
}

function readRow(row: FieldReader, feature: Feature, versions: VersionRange, checked: string | undefined): SupportRow {
  row.knownKeys(ROW_KEYS, { owner: 'a row' });
  const support = row.oneOf('support', SUPPORTS) ?? 'Unknown';
  const effect = row.oneOf('effect', EFFECTS);
  const effects = row.has('effects')
    ? row.each('effects').map((effects) => readUseEffect(effects, feature))
    : undefined;
  const requires = row.has('requires') ? row.each('requires').map(readRequirement) : undefined;
  const evidence = row.oneOf('evidence', EVIDENCES) ?? 'Inferred';
  const when = readUses(row, 'when', [feature]);
  const cautionWhen = readUses(row, 'cautionWhen', [feature]);
  const depends = shortText(row, 'depends');
  for (const key of ['support', 'evidence'].filter((one) => !row.has(one))) {
    row.missing(key);
  }
  if (effect === undefined && (support === 'Unsupported' || support === 'Partial' || requires !== undefined)) {
    row.faultHere(`expected the key "effect", one of ${EFFECTS.join(', ')}: something is not supported`);
  }
  if (support !== 'Partial' && (when !== undefined || depends !== undefined)) {
    row.faultHere('expected "when" and "depends" only with the support Partial');
  }
  if (cautionWhen !== undefined && !row.has('caution')) {
    row.faultHere('expected "cautionWhen" only with a "caution"');
  }
  return {
    versions,
    support,
    ...present({ effect, effects, requires, when, depends, limit: readLimit(row.inside('limit')) }),
    ...present({ caution: shortText(row, 'caution'), cautionWhen, note: shortText(row, 'note') }),
    evidence,
    sources: readSources(row, evidence),
    checked: dayOfCheck(row, checked),
  };
}

function readUseEffect(
  fields: FieldReader,
  feature: Feature,
): { readonly uses: readonly UsePattern[]; readonly effect: Effect } {
  fields.knownKeys(['uses', 'effect'], { owner: 'effects' });
  for (const key of ['uses', 'effect'].filter((one) => !fields.has(one))) {
    fields.missing(key);
  }
  return { uses: readUses(fields, 'uses', [feature]) ?? [], effect: fields.oneOf('effect', EFFECTS) ?? 'FailOpen' };
}

/** An empty list would mean nothing, where the one who wrote it may have meant all. */
function refuseEmpty(fields: FieldReader, key: string, owner: string): void {
  const list = fields.value(key);
  if (Array.isArray(list) && [list, ...list].some((one) => Array.isArray(one) && one.length === 0)) {
    fields.fault(key, `expected at least one ${owner}, got an empty list`);
  }
}

/** Uses: a trait, or a list of traits that come together. */
function readUses(
  row: FieldReader,
  key: 'when' | 'cautionWhen' | 'uses',
  features: readonly Feature[],
): readonly UsePattern[] | undefined {
  if (!row.has(key)) {
    return undefined;
  }
  refuseEmpty(row, key, 'use');
  return (row.list(key) ?? []).flatMap((value, index): readonly UsePattern[] => {
    const names = Array.isArray(value) ? value : [value];
    const traits = names.flatMap((name) => readName(row, key, name, TRAITS, index));
    const [only, ...others] = traits;
    const possible = features.map((feature) => FEATURE_TRAITS[feature]);
    if (features.length > 0 && !possible.some((known) => traits.every((trait) => known.includes(trait)))) {
      const known = [...new Set(possible.flat())].join(', ') || 'none';
      row.fault(
        key,
        `expected uses of ${features.join(' or ')}, which are ${known}, got ${traits.join(' with ')}`,
        index,
      );
    }
    return only === undefined ? [] : [others.length === 0 ? only : traits];
  });
}

function readNames<Name extends string>(fields: FieldReader, key: string, known: readonly Name[]): readonly Name[] {
  return fields.texts(key).flatMap((text, index) => readName(fields, key, text, known, index));
}

function readName<Name extends string>(
  fields: FieldReader,
  key: string,
  value: unknown,
  known: readonly Name[],
  index: number,
): Name | readonly [] {
  const name = known.find((one) => one === value);
  if (name === undefined) {
    const nearest = nearestKey(textOf(value), known);
    const hint = nearest === undefined ? '' : `: did you mean ${nearest}?`;
    fields.fault(key, `expected one of ${known.join(', ')}, got ${describeValue(value)}${hint}`, index);
  }
  return name ?? [];
}

function readRequirement(fields: FieldReader): SettingRequirement {
  fields.knownKeys(['setting', 'is', 'not', 'contains'], { owner: 'a requirement' });
  const operators = (['is', 'not', 'contains'] as const).filter((key) => fields.isWritten(key));
  if (operators.length !== 1) {
    fields.faultHere(`expected one of is, not and contains, got ${operators.length}`);
  }
  const requirement = present({ is: fields.text('is'), not: fields.text('not'), contains: fields.text('contains') });
  return { setting: fields.requiredText('setting'), ...requirement };
}

function readLimit(fields: FieldReader | undefined): PortLimit | undefined {
  if (fields === undefined) {
    return undefined;
  }
  fields.knownKeys(['entries', 'per', 'setting'], { owner: 'a limit' });
  const entries = fields.integer('entries') ?? 0;
  if (entries < 1) {
    fields.fault('entries', `expected a number of at least 1, got ${describeValue(fields.value('entries'))}`);
  }
  const setting = fields.someText('setting');
  return {
    entries,
    per: fields.oneOf('per', ['CIDR', 'Endpoint']) ?? 'CIDR',
    ...(setting === undefined ? {} : { setting }),
  };
}

/** What is read in public needs a URL where it is read. */
function readSources(row: FieldReader, evidence: SupportRow['evidence']): readonly string[] {
  const sources = row.texts('sources');
  for (const [index, source] of sources.entries()) {
    if (!CATALOGUE_PATTERNS.source.test(source)) {
      row.fault('sources', `expected a URL that begins with https://, got ${describeValue(source)}`, index);
    }
  }
  if (sources.length === 0 && evidence !== 'Inferred') {
    row.faultHere(`expected at least one source for the evidence ${evidence}: only Inferred needs none`);
  }
  return sources;
}
