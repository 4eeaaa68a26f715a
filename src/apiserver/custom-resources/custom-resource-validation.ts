// Validation of CustomResourceDefinitions (apiextensions 0.34, `apis/apiextensions/validation`), with its messages.
import { jsonText } from '../../go/index.ts';
import {
  addErrors,
  duplicate,
  forbidden,
  invalid,
  invalidText,
  isJsonObject,
  limitErrors,
  notSupported,
  required,
  textOf,
  tooMany,
} from '../../resources/index.ts';
import { dns1035LabelProblems, dnsSubdomainProblems } from '../../names/index.ts';
import type { CustomColumn, FieldError, JsonObject, JsonValue, KubernetesObject } from '../../resources/index.ts';
import { equalJson, parseFieldPath } from '../../resources/validation/index.ts';
import { namesOf } from './custom-resource.ts';
import type { KindNames } from './custom-resource.ts';
import { checkStructural } from './structural-schemas/structural.ts';

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

/** Maximum number of selectable fields. */
const MAX_SELECTABLE_FIELDS = 8;

/**
 * Validates a CustomResourceDefinition that has its defaults (`applyCustomResourceDefaults`) and conforms to its schema.
 * Metadata is not validated here.
 */
export function customResourceErrors(crd: KubernetesObject, old?: KubernetesObject): FieldError[] {
  const spec = objectOf(crd['spec']);
  const names = namesOf(crd);
  const group = textOf(spec['group']);
  const errors: FieldError[] = [];
  if (old === undefined && crd.metadata.name !== `${names.plural}.${group}`) {
    const why = 'must be spec.names.plural+"."+spec.group';
    errors.push(invalid('metadata.name', crd.metadata.name ?? '', why));
  }
  addErrors(
    errors,
    groupErrors(group),
    scopeErrors(textOf(spec['scope'])),
    versionsErrors(spec),
    nameErrors(names),
    storedVersionsErrors(crd, spec),
    conversionErrors(objectOf(spec['conversion'])),
  );
  if (spec['preserveUnknownFields'] === true) {
    const why =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(invalid('spec.preserveUnknownFields', true, why));
  }
  errors.push(...approvalErrors(crd, group));
  return limitErrors(old === undefined ? errors : [...errors, ...changeErrors(crd, old)]);
}

function groupErrors(group: string): FieldError[] {
  if (group === '') {
    return [required('spec.group')];
  }
  const problems = dnsSubdomainProblems(group);
  if (problems.length > 0) {
    return [invalid('spec.group', group, problems.join(','))];
  }
  return group.includes('.') ? [] : [invalid('spec.group', group, 'should be a domain with at least one dot')];
}

function scopeErrors(scope: string): FieldError[] {
  if (scope === '') {
    return [required('spec.scope')];
  }
  const scopes = ['Cluster', 'Namespaced'];
  return scopes.includes(scope) ? [] : [notSupported('spec.scope', scope, scopes)];
}

/** Validates versions. API servers report a field that is equal in all versions once, at its path in v1beta1. */
function versionsErrors(spec: JsonObject): FieldError[] {
  const versions = listOf(spec['versions']).map(objectOf);
  const errors: FieldError[] = [];
  const at = (index: number): string => `spec.versions[${index}]`;
  const schemaFor = (fields: JsonValue): JsonValue | undefined =>
    objectOf(versions.find((version) => version['selectableFields'] === fields)?.['schema'])['openAPIV3Schema'];
  const names = versions.map((version) => textOf(version['name']));
  for (const [index, version] of versions.entries()) {
    const problems = dns1035LabelProblems(names[index] ?? '');
    if (problems.length > 0) {
      errors.push(invalid(`${at(index)}.name`, names[index], problems.join(',')));
      // API servers have a separate field for the first version in their internal type.
      errors.push(...(index === 0 ? [invalid('spec.version', names[index], problems.join(','))] : []));
    }
    errors.push(...deprecationErrors(version, at(index)));
    if (version['schema'] === undefined || objectOf(version['schema'])['openAPIV3Schema'] === undefined) {
      errors.push(required(`${at(index)}.schema.openAPIV3Schema`));
    }
  }
  const hasStatus = versions.some((version) => objectOf(version['subresources'])['status'] !== undefined);
  addErrors(
    errors,
    perVersionErrors(versions, 'schema', 'spec.validation', (schema, path) =>
      schemaErrors(objectOf(schema), path, hasStatus),
    ),
    perVersionErrors(versions, 'subresources', 'spec.subresources', (one, path) =>
      scaleErrors(objectOf(one)['scale'], path),
    ),
    perVersionErrors(versions, 'additionalPrinterColumns', 'spec.additionalPrinterColumns', (columns, path) =>
      listOf(columns).flatMap((column, index) => columnErrors(objectOf(column), `${path}[${index}]`)),
    ),
    perVersionErrors(versions, 'selectableFields', 'spec.selectableFields', (fields, path) =>
      selectableErrors(listOf(fields), schemaFor(fields), path),
    ),
  );
  if (new Set(names).size !== names.length) {
    errors.push(invalidText('spec.versions', printedVersions(versions), 'must contain unique version names'));
  }
  if (versions.filter(({ storage }) => storage === true).length !== 1) {
    const why = 'must have exactly one version marked as storage version';
    errors.push(invalidText('spec.versions', printedVersions(versions), why));
  }
  return errors;
}

/** Versions in the format of API servers' messages. The internal type omits fields that all versions have in common. */
function printedVersions(versions: readonly JsonObject[]): string {
  const texts = versions.map(({ name, served, storage, deprecated, deprecationWarning }) => {
    const parts: readonly (readonly [string, unknown])[] = [
      ['Name', name ?? ''],
      ['Served', served ?? false],
      ['Storage', storage ?? false],
      ['Deprecated', deprecated ?? false],
      ['DeprecationWarning', deprecationWarning ?? null],
      ...['Schema', 'Subresources', 'AdditionalPrinterColumns', 'SelectableFields'].map(
        (part) => [part, null] as const,
      ),
    ];
    return `{${parts.map(([part, value]) => `"${part}":${jsonText(value)}`).join(',')}}`;
  });
  return `[${texts.join(',')}]`;
}

/** Validates a field of each version, or once at `commonPath` if it is equal in all versions. */
function perVersionErrors(
  versions: readonly JsonObject[],
  field: string,
  commonPath: string,
  check: (value: JsonValue, path: string) => FieldError[],
): FieldError[] {
  const values = versions.map((version) => version[field]);
  const [first] = values;
  if (first !== undefined && values.every((value) => equalJson(value, first))) {
    return check(first, commonPath);
  }
  return values.flatMap((value, index) =>
    value === undefined ? [] : check(value, `spec.versions[${index}].${field}`),
  );
}

function deprecationErrors(version: JsonObject, path: string): FieldError[] {
  const warning = version['deprecationWarning'];
  if (typeof warning !== 'string') {
    return [];
  }
  const problems: string[] = [];
  if (version['deprecated'] !== true) {
    problems.push('can only be set for deprecated versions');
  } else if (warning === '') {
    problems.push('must not be an empty string');
  } else if (Buffer.byteLength(warning) > 256) {
    problems.push('must be <= 256 characters long');
  }
  return problems.map((problem) => invalid(`${path}.deprecationWarning`, warning, problem));
}

/** Keywords that the root schema may have if the `status` subresource is enabled. */
const ROOT_KEYWORDS = [
  'description',
  'type',
  'format',
  'title',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'uniqueItems',
  'multipleOf',
  'required',
  'items',
  'properties',
  'externalDocs',
  'example',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
];

function schemaErrors(holder: JsonObject, path: string, hasStatus: boolean): FieldError[] {
  const schema = holder['openAPIV3Schema'];
  const at = `${path}.openAPIV3Schema`;
  if (schema === undefined) {
    return [];
  }
  const errors: FieldError[] = [];
  if (hasStatus && isJsonObject(schema)) {
    const other = Object.keys(schema).find((keyword) => !ROOT_KEYWORDS.includes(keyword));
    if (schema['type'] !== undefined && schema['type'] !== 'object') {
      const why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
      errors.push(invalid(`${at}.type`, schema['type'], why));
    } else if (other !== undefined) {
      const why = `only [${ROOT_KEYWORDS.map(goName).join(' ')}] fields are allowed at the root of the schema if the status subresource is enabled`;
      errors.push(invalid(at, schema, why));
    }
  }
  return [...errors, ...checkStructural(schema, at)];
}

/** The name of a keyword's Go field: `XValidations` for `x-kubernetes-validations`. */
function goName(keyword: string): string {
  const words = keyword.replace(/^x-kubernetes-/u, 'x-').split('-');
  return words.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`).join('');
}

function scaleErrors(given: JsonValue | undefined, path: string): FieldError[] {
  if (!isJsonObject(given)) {
    return [];
  }
  const rules = [
    ['specReplicasPath', ['.spec.'], 'should be a json path under .spec'],
    ['statusReplicasPath', ['.status.'], 'should be a json path under .status'],
    ['labelSelectorPath', ['.spec.', '.status.'], 'should be a json path under either .spec or .status'],
  ] as const;
  return rules.flatMap(([name, prefixes, why]) => {
    const [text, field] = [textOf(given[name]), `${path}.scale.${name}`];
    if (text === '') {
      return name === 'labelSelectorPath' ? [] : [required(field)];
    }
    const problems = pathErrors(text, field);
    return problems.length > 0 || prefixes.some((prefix) => text.startsWith(prefix))
      ? problems
      : [invalid(field, text, why)];
  });
}

function columnErrors(column: JsonObject, path: string): FieldError[] {
  const { name = '', type = '', format = '', jsonPath = '' } = column as Partial<Record<keyof CustomColumn, string>>;
  const errors: FieldError[] = [];
  const types = `must be one of ${COLUMN_TYPES.join(',')}`;
  if (name === '') {
    errors.push(required(`${path}.name`));
  }
  if (type === '') {
    errors.push(required(`${path}.type`, types));
  } else if (!COLUMN_TYPES.includes(type)) {
    errors.push(invalid(`${path}.type`, type, types));
  }
  if (format !== '' && !COLUMN_FORMATS.includes(format)) {
    errors.push(invalid(`${path}.format`, format, `must be one of ${COLUMN_FORMATS.join(',')}`));
  }
  return [...errors, ...(jsonPath === '' ? [required(`${path}.JSONPath`)] : pathErrors(jsonPath, `${path}.JSONPath`))];
}

function pathErrors(text: string, field: string): FieldError[] {
  return text.startsWith('.') ? [] : [invalid(field, text, 'must be a simple json path starting with .')];
}

function selectableErrors(fields: readonly JsonValue[], schema: JsonValue | undefined, path: string): FieldError[] {
  const seen = new Set<string>();
  const errors = fields.flatMap((given, index) => {
    const text = textOf(objectOf(given)['jsonPath']);
    const field = `${path}[${index}].jsonPath`;
    if (text === '' || !isJsonObject(schema)) {
      return [required(field)];
    }
    const found = parseFieldPath(text, schema, { isBracketAllowed: false });
    if (typeof found === 'string') {
      return [invalid(field, text, `is an invalid path: ${found}`)];
    }
    const problems: FieldError[] = [];
    if (found.path.split('.')[0] === 'metadata') {
      problems.push(invalid(field, text, 'must not point to fields in metadata'));
    }
    if (!['string', 'boolean', 'integer'].includes(found.schema.type ?? '')) {
      const why =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      problems.push(invalid(field, text, why));
    }
    if (seen.has(found.path)) {
      problems.push(duplicate(field, text));
    }
    seen.add(found.path);
    return problems;
  });
  return seen.size > MAX_SELECTABLE_FIELDS ? [...errors, tooMany(path, seen.size, MAX_SELECTABLE_FIELDS)] : errors;
}

function nameErrors(names: KindNames): FieldError[] {
  const errors: FieldError[] = [];
  for (const part of ['plural', 'singular', 'kind', 'listKind'] as const) {
    const name = names[part];
    const field = `spec.names.${part}`;
    const isKind = part === 'kind' || part === 'listKind';
    const problems = name === '' ? [] : dns1035LabelProblems(isKind ? name.toLowerCase() : name);
    if (name === '') {
      errors.push(required(field));
    } else if (problems.length > 0) {
      const prefix = isKind ? 'may have mixed case, but should otherwise match: ' : '';
      errors.push(invalid(field, name, `${prefix}${problems.join(',')}`));
    }
  }
  for (const part of ['shortNames', 'categories'] as const) {
    for (const [index, name] of names[part].entries()) {
      const problems = dns1035LabelProblems(name);
      if (problems.length > 0) {
        errors.push(invalid(`spec.names.${part}[${index}]`, name, problems.join(',')));
      }
    }
  }
  if (names.kind !== '' && names.kind === names.listKind) {
    errors.push(invalid('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'));
  }
  return errors;
}

function storedVersionsErrors(crd: KubernetesObject, spec: JsonObject): FieldError[] {
  const field = 'status.storedVersions';
  const stored = listOf(objectOf(crd['status'])['storedVersions']);
  const versions = listOf(spec['versions']).map(objectOf);
  if (stored.length === 0) {
    return [invalid(field, null, 'must have at least one stored version')];
  }
  const places = new Map(stored.map((name, index) => [name, index] as const).toReversed());
  const known = new Set(versions.map(({ name }) => name ?? null));
  const missing = versions.filter(({ name, storage }) => storage === true && !places.has(name ?? null));
  const gone = stored.filter((name) => !known.has(name));
  return [
    ...missing.map(({ name }) => invalid(field, stored, `must have the storage version ${textOf(name)}`)),
    ...gone.map((name) => {
      const text = textOf(name);
      const why = `missing from spec.versions; ${text} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${text} and removes ${text} from status.storedVersions`;
      return invalid(`${field}[${places.get(name)}]`, text, why);
    }),
  ];
}

function conversionErrors(conversion: JsonObject): FieldError[] {
  const strategy = textOf(conversion['strategy']);
  const strategies = ['None', 'Webhook'];
  const webhook = conversion['webhook'];
  if (strategy === '') {
    return [required('spec.conversion.strategy')];
  }
  if (!strategies.includes(strategy)) {
    return [notSupported('spec.conversion.strategy', strategy, strategies)];
  }
  if (strategy === 'None') {
    const why = 'should not be set when strategy is not set to Webhook';
    return webhook === undefined ? [] : [forbidden('spec.conversion.webhookClientConfig', why)];
  }
  const client = objectOf(webhook)['clientConfig'];
  const versions = listOf(objectOf(webhook)['conversionReviewVersions']);
  return [
    ...(client === undefined
      ? [required('spec.conversion.webhookClientConfig', 'required when strategy is set to Webhook')]
      : []),
    ...reviewVersionErrors(versions, 'spec.conversion.conversionReviewVersions'),
  ];
}

function reviewVersionErrors(versions: readonly JsonValue[], field: string): FieldError[] {
  if (versions.length === 0) {
    return [required(field)];
  }
  return versions.includes('v1') || versions.includes('v1beta1')
    ? []
    : [invalid(field, versions, 'must include at least one of v1, v1beta1')];
}

/** Requires the annotation `api-approved.kubernetes.io` for groups of the Kubernetes project. */
function approvalErrors(crd: KubernetesObject, group: string): FieldError[] {
  const isProtected = group === 'k8s.io' || group === 'kubernetes.io' || /\.(?:k8s|kubernetes)\.io$/u.test(group);
  const annotation = 'api-approved.kubernetes.io';
  const value = crd.metadata.annotations?.[annotation];
  const field = `metadata.annotations[${annotation}]`;
  if (!isProtected) {
    return [];
  }
  if (value === undefined) {
    return [
      required(
        field,
        'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
      ),
    ];
  }
  const isApproved = value.startsWith('unapproved') || URL.canParse(value);
  const why =
    'protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111';
  return isApproved ? [] : [invalid(field, value, why)];
}

function changeErrors(crd: KubernetesObject, old: KubernetesObject): FieldError[] {
  const [spec, before] = [objectOf(crd['spec']), objectOf(old['spec'])];
  const [names, namesBefore] = [namesOf(crd), namesOf(old)];
  const conditions = listOf(objectOf(old['status'])['conditions']).map(objectOf);
  const isEstablished = conditions.some(({ type, status }) => type === 'Established' && status === 'True');
  const changes: readonly (readonly [string, JsonValue, JsonValue])[] = [
    ...(isEstablished
      ? ([
          ['spec.scope', textOf(spec['scope']), textOf(before['scope'])],
          ['spec.names.kind', names.kind, namesBefore.kind],
        ] as const)
      : []),
    ['spec.group', textOf(spec['group']), textOf(before['group'])],
    ['spec.names.plural', names.plural, namesBefore.plural],
  ];
  return changes
    .filter(([, value, was]) => value !== was)
    .map(([field, value]) => invalid(field, value, 'field is immutable'));
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
