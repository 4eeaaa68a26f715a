// Validation of `metadata` in API servers (apimachinery 0.34, `api/validation` and `apis/meta/v1/validation`), with
// their messages.
import { jsonText, quote } from '../../go/index.ts';
import { addErrors, forbidden, invalid, invalidText, limitErrors, required, tooLong } from '../field-error.ts';
import type { FieldError } from '../field-error.ts';
import { isJsonObject } from '../../values/index.ts';
import type { KubernetesObject, ObjectMeta, OwnerReference } from '../kubernetes-object.ts';
import {
  dns1035LabelProblems,
  dnsLabelProblems,
  dnsSubdomainProblems,
  pathSegmentPrefixProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
} from '../../names/index.ts';
import { groupVersionOf } from '../resource-type.ts';
import { labelErrors } from '../selectors.ts';

/** Rules for names of objects. */
export type NameRule = 'dns-subdomain' | 'dns-label' | 'dns-label-1035' | 'path-segment';

/** The properties of a kind that its metadata depend on. */
export interface MetadataRules {
  readonly namespaced: boolean;
  /** Default: `dns-subdomain`. */
  readonly nameRule?: NameRule;
  readonly group?: string;
  readonly origin?: 'builtin' | 'custom';
}

/** Maximum size of all annotations of an object, keys included: Kubernetes' limit, because of etcd's. */
export const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/** Kubernetes' limits for entries of `managedFields`. */
const MAX_FIELD_MANAGER_BYTES = 128;
const MAX_SUBRESOURCE_BYTES = 256;

const IMMUTABLE = 'field is immutable';

/** Finalizers for the propagation policy of a deletion; at most one of them is allowed. */
export const ORPHAN_FINALIZER = 'orphan';
export const FOREGROUND_FINALIZER = 'foregroundDeletion';

/**
 * Mistakes in an object's metadata. On an update (`old` given), the server has set omitted fields (`uid`) and immutable
 * ones (`creationTimestamp`, `deletionTimestamp`) before. Names have been generated. Metadata of another shape than
 * `metav1.ObjectMeta` are ignored: ObjectSchema reports them.
 */
export function metadataErrors(object: KubernetesObject, rules: MetadataRules, old?: KubernetesObject): FieldError[] {
  const meta = readMeta(object);
  if (old === undefined) {
    const errors = creationErrors(meta, rules, rules.nameRule ?? 'dns-subdomain');
    return unique([...errors, ...coreFinalizerErrors(meta, rules)]);
  }
  return unique([
    ...updateErrors(meta, readMeta(old)),
    ...creationErrors(meta, rules, 'path-segment'),
    ...coreFinalizerErrors(meta, rules),
  ]);
}

/** Mistakes in a name; empty when it is valid. */
function nameProblems(name: string, rule: NameRule): readonly string[] {
  switch (rule) {
    case 'dns-subdomain':
      return dnsSubdomainProblems(name);
    case 'dns-label':
      return dnsLabelProblems(name);
    case 'dns-label-1035':
      return dns1035LabelProblems(name);
    case 'path-segment':
      return pathSegmentProblems(name);
    default:
      return rule satisfies never;
  }
}

/** Mistakes in a `generateName`, which may end with a dash. */
function prefixProblems(prefix: string, rule: NameRule): readonly string[] {
  if (rule === 'path-segment') {
    return pathSegmentPrefixProblems(prefix);
  }
  const masked = prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix;
  return nameProblems(masked, rule);
}

/** `metadata` without fields of a wrong type. */
function readMeta(object: KubernetesObject): ObjectMeta {
  const given: unknown = object.metadata;
  const meta: Record<string, unknown> = {};
  for (const [field, isRight] of META_FIELDS) {
    const value = isJsonObject(given) && Object.hasOwn(given, field) ? given[field] : undefined;
    if (isRight(value)) {
      meta[field] = value;
    }
  }
  return meta;
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isNumber = (value: unknown): boolean => typeof value === 'number';
const isListOf = (isElement: (value: unknown) => boolean) => (value: unknown) =>
  Array.isArray(value) && value.every(isElement);
const isTexts = (value: unknown): boolean => isJsonObject(value) && Object.values(value).every(isText);

const META_FIELDS: readonly (readonly [keyof ObjectMeta, (value: unknown) => boolean])[] = [
  ['name', isText],
  ['generateName', isText],
  ['namespace', isText],
  ['uid', isText],
  ['resourceVersion', isText],
  ['generation', isNumber],
  ['creationTimestamp', isText],
  ['deletionTimestamp', isText],
  ['deletionGracePeriodSeconds', isNumber],
  ['labels', isTexts],
  ['annotations', isTexts],
  ['ownerReferences', isListOf(isJsonObject)],
  ['finalizers', isListOf(isText)],
  ['managedFields', isListOf(isJsonObject)],
];

function creationErrors(meta: ObjectMeta, { namespaced }: MetadataRules, rule: NameRule): FieldError[] {
  const { generateName = '', generation = 0 } = meta;
  const errors: FieldError[] = [];
  if (generateName !== '') {
    errors.push(
      ...prefixProblems(generateName, rule).map((one) => invalid('metadata.generateName', generateName, one)),
    );
  }
  addErrors(errors, nameErrors(meta, rule), namespaceErrors(meta, namespaced));
  if (generation < 0) {
    errors.push(invalid('metadata.generation', generation, 'must be greater than or equal to 0'));
  }
  addErrors(errors, labelErrors(meta.labels ?? {}, 'metadata.labels'), annotationErrors(meta), ownerErrors(meta));
  addErrors(errors, finalizerErrors(meta), managedFieldsErrors(meta));
  return errors;
}

function nameErrors({ name = '' }: ObjectMeta, rule: NameRule): FieldError[] {
  return name === ''
    ? [required('metadata.name', 'name or generateName is required')]
    : nameProblems(name, rule).map((problem) => invalid('metadata.name', name, problem));
}

function namespaceErrors({ namespace = '' }: ObjectMeta, namespaced: boolean): FieldError[] {
  if (!namespaced) {
    return namespace === '' ? [] : [forbidden('metadata.namespace', 'not allowed on this type')];
  }
  return namespace === ''
    ? [required('metadata.namespace')]
    : dnsLabelProblems(namespace).map((problem) => invalid('metadata.namespace', namespace, problem));
}

function updateErrors(meta: ObjectMeta, old: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  if (old.deletionTimestamp !== undefined) {
    addErrors(errors, newFinalizerErrors(meta.finalizers ?? [], old.finalizers ?? []));
  }
  if ((meta.resourceVersion ?? '') === '') {
    errors.push(invalid('metadata.resourceVersion', '', 'must be specified for an update'));
  }
  if ((meta.generation ?? 0) < (old.generation ?? 0)) {
    errors.push(invalid('metadata.generation', meta.generation ?? 0, 'must not be decremented'));
  }
  for (const field of ['name', 'namespace', 'uid'] as const) {
    if ((meta[field] ?? '') !== (old[field] ?? '')) {
      errors.push(invalid(`metadata.${field}`, meta[field] ?? '', IMMUTABLE));
    }
  }
  for (const field of ['creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if (meta[field] !== old[field]) {
      errors.push(invalid(`metadata.${field}`, meta[field] ?? null, IMMUTABLE));
    }
  }
  addErrors(errors, labelErrors(meta.labels ?? {}, 'metadata.labels'), annotationErrors(meta), ownerErrors(meta));
  addErrors(errors, managedFieldsErrors(meta));
  return errors;
}

function newFinalizerErrors(finalizers: readonly string[], old: readonly string[]): FieldError[] {
  const before = new Set(old);
  const added = [...new Set(finalizers)].filter((finalizer) => !before.has(finalizer)).toSorted();
  const list = `[]string{${added.map(quote).join(', ')}}`;
  const message = `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`;
  return added.length === 0 ? [] : [forbidden('metadata.finalizers', message)];
}

function annotationErrors({ annotations = {} }: ObjectMeta): FieldError[] {
  const field = 'metadata.annotations';
  // Keys are validated in lower case.
  const errors = Object.keys(annotations).flatMap((key) =>
    qualifiedNameProblems(key.toLowerCase()).map((problem) => invalid(field, key, problem)),
  );
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  return bytes > MAX_ANNOTATIONS_BYTES ? [...errors, tooLong(field, MAX_ANNOTATIONS_BYTES)] : errors;
}

function ownerErrors({ ownerReferences = [] }: ObjectMeta): FieldError[] {
  const path = 'metadata.ownerReferences';
  const errors: FieldError[] = [];
  let controller: string | undefined;
  let all: string | undefined;
  for (const owner of ownerReferences as readonly Partial<OwnerReference>[]) {
    const { apiVersion = '', kind = '', name = '' } = owner;
    const { group, version } = groupVersionOf(apiVersion);
    if (version === '') {
      errors.push(invalid(`${path}.apiVersion`, apiVersion, 'version must not be empty'));
    }
    for (const field of ['kind', 'name', 'uid'] as const) {
      if ((owner[field] ?? '') === '') {
        errors.push(invalid(`${path}.${field}`, '', 'must not be empty'));
      }
    }
    if (group === '' && version === 'v1' && kind === 'Event') {
      errors.push(invalidText(path, ownerText(owner), '/v1, Kind=Event is disallowed from being an owner'));
    }
    if (owner.controller === true && controller !== undefined) {
      const found = `Found "true" in references for ${controller} and ${kind}/${name}`;
      all ??= `[${ownerReferences.map(ownerText).join(',')}]`;
      errors.push(invalidText(path, all, `Only one reference can have Controller set to true. ${found}`));
    } else if (owner.controller === true) {
      controller = `${kind}/${name}`;
    }
  }
  return errors;
}

/** A reference in the format of API servers, with its fields in their order. */
function ownerText(owner: Partial<OwnerReference>): string {
  const fields = ['apiVersion', 'kind', 'name', 'uid', 'controller', 'blockOwnerDeletion'] as const;
  const shown = fields.filter((field) => owner[field] !== undefined);
  return `{${shown.map((field) => `"${field}":${jsonText(owner[field])}`).join(',')}}`;
}

function finalizerErrors({ finalizers = [] }: ObjectMeta): FieldError[] {
  const path = 'metadata.finalizers';
  const errors = finalizers.flatMap((finalizer) =>
    qualifiedNameProblems(finalizer).map((problem) => invalid(path, finalizer, problem)),
  );
  if (finalizers.includes(ORPHAN_FINALIZER) && finalizers.includes(FOREGROUND_FINALIZER)) {
    const both = `finalizer ${ORPHAN_FINALIZER} and ${FOREGROUND_FINALIZER} cannot be both set`;
    errors.push(invalid(path, finalizers, both));
  }
  return errors;
}

/** Finalizers without a domain that are allowed in the core group (`core/helper`, IsStandardFinalizerName). */
const STANDARD_FINALIZERS = new Set(['kubernetes', ORPHAN_FINALIZER, FOREGROUND_FINALIZER]);

/** Additional rules for finalizers in the core group. */
function coreFinalizerErrors({ finalizers = [] }: ObjectMeta, { group, origin }: MetadataRules): FieldError[] {
  if (group !== '' || origin !== 'builtin') {
    return [];
  }
  const why = 'name is neither a standard finalizer name nor is it fully qualified';
  return finalizers.flatMap((finalizer, index) =>
    finalizer.includes('/') || STANDARD_FINALIZERS.has(finalizer)
      ? []
      : [invalid(`metadata.finalizers[${index}]`, finalizer, why)],
  );
}

function managedFieldsErrors({ managedFields = [] }: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, entry] of managedFields.entries()) {
    const path = `metadata.managedFields[${index}]`;
    const { operation = '', fieldsType = '', manager = '', subresource = '' } = entry;
    if (operation !== 'Apply' && operation !== 'Update') {
      errors.push(invalid(`${path}.operation`, operation, 'must be `Apply` or `Update`'));
    }
    if (fieldsType !== '' && fieldsType !== 'FieldsV1') {
      errors.push(invalid(`${path}.fieldsType`, fieldsType, 'must be `FieldsV1`'));
    }
    errors.push(...fieldManagerErrors(manager, `${path}.manager`));
    if (Buffer.byteLength(subresource) > MAX_SUBRESOURCE_BYTES) {
      errors.push(tooLong(`${path}.subresource`, MAX_SUBRESOURCE_BYTES));
    }
  }
  return errors;
}

/** Mistakes in the name of a field manager, also in the query parameter `fieldManager`. */
export function fieldManagerErrors(manager: string, field: string): FieldError[] {
  const errors = Buffer.byteLength(manager) > MAX_FIELD_MANAGER_BYTES ? [tooLong(field, MAX_FIELD_MANAGER_BYTES)] : [];
  const shown = quote(manager);
  let position = 0;
  for (const character of manager) {
    if (position > MAX_FIELD_MANAGER_BYTES) {
      break;
    }
    if (!/[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(character)) {
      const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
      errors.push(invalidText(field, shown, `invalid character U+${code} (at position ${position})`));
    }
    position += Buffer.byteLength(character);
  }
  return errors;
}

/** As in API servers, repeated errors are reported once. */
function unique(errors: readonly FieldError[]): FieldError[] {
  return [...new Map(limitErrors(errors).map((error) => [`${error.field}: ${error.message}`, error])).values()];
}
