// The JSON schema of a provider in a catalogue, for editors and CI. What no schema can say, such as that rows cover every version
// once, parseCatalogue checks.
import type { Schema } from '../../resources/index.ts';
import { EVIDENCES, SUPPORTS } from './catalogue.ts';
import { EFFECTS, FEATURES, TRAITS } from './feature.ts';
import { CATALOGUE_PATTERNS, MAX_DEFECTS, MAX_PATTERNS, MAX_ROWS, MAX_TEXT } from './read-catalogue.ts';

const text = (description: string, extra: Schema = {}): Schema => ({
  description,
  type: 'string',
  minLength: 1,
  ...extra,
});
const choice = (description: string, values: readonly string[]): Schema => ({
  description,
  type: 'string',
  enum: values,
});
const list = (description: string, items: Schema, extra: Schema = {}): Schema => ({
  description,
  type: 'array',
  items,
  ...extra,
});
const mapping = (description: string, properties: Record<string, Schema>, extra: Schema = {}): Schema => ({
  description,
  type: 'object',
  properties,
  additionalProperties: false,
  ...extra,
});

const OS = choice('The operating system of the nodes, if it is for one only.', ['linux', 'windows']);
const DAY = (description: string): Schema => text(description, { pattern: CATALOGUE_PATTERNS.day.source });
const NAMES = (description: string): Schema => list(description, text('A name.'), { maxItems: MAX_PATTERNS });

const REQUIREMENT = mapping(
  'A setting that must have, must not have, or must contain a value.',
  {
    setting: text('A key of `settings`.'),
    is: { type: 'string' },
    not: { type: 'string' },
    contains: { type: 'string' },
  },
  {
    required: ['setting'],
    oneOf: [{ required: ['is'] }, { required: ['not'] }, { required: ['contains'] }],
  },
);

const TRAIT = choice('A trait.', TRAITS);
const USES = (description: string): Schema =>
  list(
    description,
    {
      description: 'A trait, or a list of traits that come together.',
      anyOf: [TRAIT, list('All of them.', TRAIT, { minItems: 1 })],
    },
    { minItems: 1 },
  );
const VERSIONS = (description: string): Schema => text(description, { pattern: CATALOGUE_PATTERNS.versions.source });

/** What is read in public needs a URL where it is read. */
const IS_SOURCED: Schema = {
  anyOf: [
    { required: ['sources'], properties: { sources: { minItems: 1 } } },
    { properties: { evidence: { enum: ['Inferred'] } } },
  ],
};

export const ROW_SCHEMA: Schema = mapping(
  'What the provider does in a range of versions.',
  {
    versions: VERSIONS(
      '`*`, `<1.2.0`, `>=1.2.0`, `>=1.2.0 <1.3.0`, or several with ` || ` between them. The rows of a feature cover every version once, in order.',
    ),
    support: choice('Whether the feature is supported.', SUPPORTS),
    effect: choice('What happens where it is not supported.', EFFECTS),
    effects: list(
      'Uses with another effect.',
      mapping(
        'The effect of some uses.',
        { uses: USES('The uses.'), effect: choice('What happens.', EFFECTS) },
        { required: ['uses', 'effect'] },
      ),
    ),
    requires: list('Settings that it needs.', REQUIREMENT),
    when: USES('Of Partial: the uses that are not supported.'),
    depends: text('Of Partial: what of the cluster decides.', { maxLength: MAX_TEXT }),
    limit: mapping(
      'How many port entries fit.',
      {
        entries: { type: 'integer', minimum: 1 },
        per: choice('For an address, or for the peers of a pod.', ['CIDR', 'Endpoint']),
        setting: text('The setting that changes it.'),
      },
      { required: ['entries'] },
    ),
    caution: text('What to know although it is supported.', { maxLength: MAX_TEXT }),
    cautionWhen: USES('The uses that the caution is about. Default: all.'),
    note: text('An explanation.', { maxLength: MAX_TEXT }),
    evidence: choice('Where this is known from.', EVIDENCES),
    sources: list(
      'Where a reader can check it. Only what is inferred needs none.',
      text('A URL.', { pattern: CATALOGUE_PATTERNS.source.source }),
    ),
    checked: DAY('The day of the check. Default: that of the provider.'),
  },
  {
    required: ['versions', 'support', 'evidence'],
    allOf: [
      {
        anyOf: [
          { required: ['effect'] },
          { properties: { support: { enum: ['Supported', 'Unknown'] } }, not: { required: ['requires'] } },
        ],
      },
      {
        anyOf: [
          { properties: { support: { enum: ['Partial'] } } },
          { not: { anyOf: [{ required: ['when'] }, { required: ['depends'] }] } },
        ],
      },
      { anyOf: [{ required: ['caution'] }, { not: { required: ['cautionWhen'] } }] },
      IS_SOURCED,
    ],
  },
);

const DEFECT = mapping(
  'A fault of some versions, beside what rows say.',
  {
    ids: list('Its advisories.', text('An advisory.', { pattern: CATALOGUE_PATTERNS.advisory.source })),
    features: list('What it is about.', choice('A feature.', FEATURES), { minItems: 1 }),
    versions: VERSIONS('The versions that have it, as in a row.'),
    when: USES('The uses that it is about. Default: all.'),
    settings: list('It happens only with these.', REQUIREMENT),
    depends: text('What else decides, which no policy shows. Then it only warns.', { maxLength: MAX_TEXT }),
    effect: choice('What happens.', EFFECTS),
    summary: text('What happens, as a sentence after the name of the provider.', { maxLength: MAX_TEXT }),
    evidence: choice('Where this is known from.', EVIDENCES),
    sources: list(
      'Where a reader can check it. Only what is inferred needs none.',
      text('A URL.', { pattern: CATALOGUE_PATTERNS.source.source }),
    ),
    checked: DAY('The day of the check. Default: that of the provider.'),
  },
  { required: ['features', 'versions', 'effect', 'summary', 'evidence'], allOf: [IS_SOURCED] },
);

const AGENT = mapping(
  'A container by which pods of the provider are known. All that is given must hold.',
  {
    container: text('Its name.'),
    images: NAMES('The last segment of the path of its image. A star at the end matches any suffix.'),
    registry: text('The host of its image.'),
    daemonSets: NAMES('The DaemonSet of the pod. A star at the end matches any suffix.'),
    os: OS,
    beside: text('Another container of the pod.'),
  },
  { required: ['container'] },
);

const KUBELET_VERSIONS = mapping(
  'The version of the provider in a range of kubelets.',
  {
    kubelet: text('The range of kubelets.', { pattern: CATALOGUE_PATTERNS.versions.source }),
    namespace: text('The namespace of the pods, by which a distribution is known.'),
    version: text('The version of the provider in it: exactly `1.9.0`, or at least `>=1.9.0`.', {
      pattern: CATALOGUE_PATTERNS.leastVersion.source,
    }),
    sources: list('Where a reader can check it.', text('A URL.', { pattern: CATALOGUE_PATTERNS.source.source })),
  },
  { required: ['kubelet', 'version'] },
);

const VERSION_OBJECT = mapping(
  'The object of the provider that has its version.',
  {
    apiVersion: text('Its apiVersion.'),
    kind: text('Its kind.'),
    resource: text('The plural of the kind, in lower case.'),
    name: text('Its name.'),
    field: text('The path of the version: `spec.calicoVersion`.'),
  },
  { required: ['apiVersion', 'kind', 'resource', 'name', 'field'] },
);

const DETECTION = mapping('How the provider is found in a cluster.', {
  agents: list('Patterns of its pods.', AGENT, { maxItems: MAX_PATTERNS }),
  kubelet: text('A part of the version of kubelets that contain it.'),
  kubeletVersions: list('Its versions by those of kubelets, where its pods show none.', KUBELET_VERSIONS, {
    maxItems: MAX_PATTERNS,
  }),
  images: NAMES('Names of images whose tags are versions, with stars for any text. Default: all.'),
  object: VERSION_OBJECT,
  replaces: NAMES('Providers that its pods also look like.'),
  configMap: text('The ConfigMap with settings, in the namespace of its pods.'),
  arguments: NAMES('Settings that are arguments of the container.'),
  argumentsOf: text('Another container with these arguments.'),
  containers: NAMES('Settings that say whether the pod has the container of that name.'),
});

const SETTING = mapping(
  'A setting of the provider that rows need.',
  {
    default: { description: 'The value where it is not set.', type: 'string' },
    fixed: { description: 'Whether it always has its default.', type: 'boolean' },
    where: text('Where it is found in a cluster.'),
  },
  { required: ['where'] },
);

/** The schema of a document of a catalogue file. */
export const PROVIDER_SCHEMA: Schema = mapping(
  'What a network provider does with each feature of a NetworkPolicy.',
  {
    name: text('The name of the provider.', { maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' }),
    title: text('Its name for people.', { maxLength: MAX_TEXT }),
    controllerName: text('The key of its entry in statuses, DOMAIN/PATH.', {
      pattern: CATALOGUE_PATTERNS.controllerName.source,
    }),
    os: OS,
    state: choice('Whether it is maintained.', ['Active', 'Retiring', 'Abandoned']),
    latest: text('The newest version that was examined. Later minor versions are unknown.', { pattern: '^v?\\d' }),
    checked: DAY('The day of the check of each row that names none.'),
    inherits: text('The provider whose rows a new provider starts with.'),
    detect: DETECTION,
    settings: { description: 'Settings by name.', type: 'object', additionalProperties: SETTING },
    defects: list('Its known faults, with advisories.', DEFECT, { maxItems: MAX_DEFECTS }),
    features: mapping(
      'Rows by feature.',
      Object.fromEntries(
        FEATURES.map((feature) => [
          feature,
          list('Rows in the order of their versions.', ROW_SCHEMA, { minItems: 1, maxItems: MAX_ROWS }),
        ]),
      ),
    ),
  },
  { required: ['name'] },
);
