// The kinds of OpenReports (openreports.io, Apache-2.0), which Policy Reporter and other consoles read. The schemas have the fields
// and types of release 0.2.1; the descriptions are ours.
import { column, AGE_COLUMN } from '../kind-declarations/own-kind.ts';
import type { KubernetesObject } from '../kubernetes-object.ts';
import type { ResourceType } from '../resource-type.ts';
import {
  choice,
  entries,
  flag,
  type Infer,
  integer,
  list,
  object,
  optional,
  text,
  type TypedSchema,
} from '../schema-builder.ts';
import type { Schema } from '../schema.ts';

/** From the most to the least severe. */
export const REPORT_SEVERITIES = ['critical', 'high', 'medium', 'low', 'info'] as const;
export const REPORT_RESULTS = ['pass', 'fail', 'warn', 'error', 'skip'] as const;

const ATOMIC_MAP = { 'x-kubernetes-map-type': 'atomic' } as const;
const ATOMIC_LIST = { 'x-kubernetes-list-type': 'atomic' } as const;

const REFERENCE = object(
  'An object.',
  {
    apiVersion: optional(text('Its group and version.')),
    fieldPath: optional(text('A part of it.')),
    kind: optional(text('Its kind.')),
    name: optional(text('Its name.')),
    namespace: optional(text('Its namespace.')),
    resourceVersion: optional(text('Its version.')),
    uid: optional(text('Its uid.')),
  },
  ATOMIC_MAP,
);

const LABEL_SELECTOR = object(
  'Objects by their labels.',
  {
    matchExpressions: optional(
      list(
        'Conditions, all of which hold.',
        object('A condition.', {
          key: text('A label.'),
          operator: text('`In`, `NotIn`, `Exists` or `DoesNotExist`.'),
          values: optional(list('Values for `In` and `NotIn`.', text('A value.'), ATOMIC_LIST)),
        }),
        ATOMIC_LIST,
      ),
    ),
    matchLabels: optional(entries('Labels, all of which the objects have.', text('A value.'))),
  },
  ATOMIC_MAP,
);

const RESULT = object('What a policy says about an object.', {
  category: optional(text('The category of the policy.')),
  message: optional(text('The message of the policy.')),
  policy: text('The policy.'),
  properties: optional(entries('Further values.', text('A value.'))),
  resourceSelector: optional(LABEL_SELECTOR),
  resources: optional(list('The object.', REFERENCE)),
  result: optional(choice('The result.', REPORT_RESULTS)),
  rule: optional(text('The rule of the policy.')),
  scored: optional(flag('Whether the result counts in scores.')),
  severity: optional(choice('The severity of the policy.', REPORT_SEVERITIES)),
  source: optional(text('What evaluated the policy.')),
  timestamp: optional(
    object('When the result was written.', {
      nanos: integer('Nanoseconds.'),
      seconds: integer('Seconds since 1970.', { format: 'int64' }),
    }),
  ),
});

const REPORT_FIELDS = {
  configuration: optional(
    object('What the report contains.', {
      limits: object('Limits.', {
        maxResults: optional(count('The most results.')),
        statusFilter: optional(list('The results that are reported.', choice('A result.', REPORT_RESULTS))),
      }),
    }),
  ),
  results: optional(list('The results.', RESULT)),
  scope: optional(REFERENCE),
  scopeSelector: optional(LABEL_SELECTOR),
  source: optional(text('What evaluated the policies.')),
  summary: optional(
    object('Counts of the results.', {
      error: optional(count('No verdicts.')),
      fail: optional(count('Failures.')),
      pass: optional(count('Passes.')),
      skip: optional(count('Exceptions.')),
      warn: optional(count('Warnings.')),
    }),
  ),
};

const REPORT_CONTENT = object('Results of policies.', REPORT_FIELDS);

/** One result of a report. */
export type ReportResult = Infer<typeof RESULT>;
export type ReportSummary = Required<NonNullable<OpenReport['summary']>>;
/** A `Report` or `ClusterReport`. */
export type OpenReport = KubernetesObject & Infer<typeof REPORT_CONTENT>;

/** An API that results can be written in. All else is the same. */
export interface ReportApi {
  /** On the objects of a namespace, and of none. */
  readonly reports: ResourceType<OpenReport>;
  readonly clusterReports: ResourceType<OpenReport>;
  readonly shortNames: readonly [string, string];
  /** Fields of reports that it has not. */
  readonly without: readonly (keyof OpenReport & string)[];
  /** What is written for severities that not all releases have. */
  readonly severities: Readonly<Partial<Record<ReportSeverityName, ReportSeverityName>>>;
}

type ReportSeverityName = (typeof REPORT_SEVERITIES)[number];

/** By the names in values and flags. */
export const REPORT_FORMATS = {
  openreports: {
    ...kinds({ group: 'openreports.io', version: 'v1alpha1' }, 'Report'),
    shortNames: ['reps', 'creps'],
    without: [],
    severities: {},
  },
  // The one before, which is archived.
  wgpolicyk8s: {
    ...kinds({ group: 'wgpolicyk8s.io', version: 'v1alpha2' }, 'PolicyReport'),
    shortNames: ['polr', 'cpolr'],
    without: ['source', 'configuration'],
    severities: { critical: 'high', info: 'low' },
  },
} as const satisfies Readonly<Record<string, ReportApi>>;

function kinds(
  groupVersion: Pick<ResourceType, 'group' | 'version'>,
  kind: string,
): Pick<ReportApi, 'reports' | 'clusterReports'> {
  const resource = `${kind.toLowerCase()}s`;
  return {
    reports: { ...groupVersion, resource, kind, namespaced: true },
    clusterReports: { ...groupVersion, resource: `cluster${resource}`, kind: `Cluster${kind}`, namespaced: false },
  };
}

/** The CustomResourceDefinitions, for clusters where nothing else brings them. */
export function reportDefinitions(format: ReportApi = REPORT_FORMATS.openreports): readonly KubernetesObject[] {
  const [short, clusterShort] = format.shortNames;
  return [definitionOf(format, format.reports, short), definitionOf(format, format.clusterReports, clusterShort)];
}

function definitionOf(
  format: ReportApi,
  { group, version, resource, kind, namespaced }: ResourceType,
  shortName: string,
): KubernetesObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${resource}.${group}` },
    spec: {
      group,
      scope: namespaced ? 'Namespaced' : 'Cluster',
      names: {
        plural: resource,
        singular: kind.toLowerCase(),
        kind,
        listKind: `${kind}List`,
        shortNames: [shortName],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: definedSchema(format) },
          additionalPrinterColumns: [
            column('Kind', '.scope.kind', { isWide: true }),
            column('Name', '.scope.name', { isWide: true }),
            ...REPORT_RESULTS.map((result) =>
              column(`${result.charAt(0).toUpperCase()}${result.slice(1)}`, `.summary.${result}`, { type: 'integer' }),
            ),
            AGE_COLUMN,
          ],
        },
      ],
    },
  };
}

function definedSchema({ without }: ReportApi): Schema {
  const fields = Object.entries(REPORT_CONTENT.properties ?? {});
  return {
    ...REPORT_CONTENT,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      ...Object.fromEntries(fields.filter(([name]) => !without.some((one) => one === name))),
    },
  };
}

/** Without a format, as published. */
function count(description: string): TypedSchema<number> {
  return { type: 'integer', description };
}
