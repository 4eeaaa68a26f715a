// Why API servers refuse a NetworkPolicy, in their words, and what was probably meant.
import { MAX_MESSAGE, parseBlock, readNetworkPolicy } from '../../engine/network-policy/index.ts';
import { builtinKind, builtinKinds, groupVersionOf, kubernetesSchema, knownKind } from '../../resources/index.ts';
import type { FieldError, KubernetesObject, Schema } from '../../resources/index.ts';
import { decodeError } from '../../resources/decoding/index.ts';
import { CheckedValue, checkNetworkPolicy } from '../../resources/kind-validation/index.ts';
import { metadataErrors, ObjectSchema } from '../../resources/validation/index.ts';
import {
  asJson,
  isJsonObject,
  type JsonValue,
  nearestKey,
  own,
  shortened,
  unknownKeyHint,
} from '../../values/index.ts';
import { fieldPathOf } from '../field-path.ts';

/** A mistake for which API servers refuse a policy. */
export interface PolicyRefusal {
  /** `spec.egress[0].to[0].ipBlock.except[0]` */
  readonly path: string;
  /** With the field: `spec.policyTypes[0]: Unsupported value: "Ingres": …` */
  readonly message: string;
}

const API_VERSION = 'networking.k8s.io/v1';
const KIND = 'NetworkPolicy';
const NETWORK_POLICIES = knownKind(API_VERSION, KIND);
/** API servers before 1.16 serve the same fields in this version. */
const FORMER_VERSION = 'extensions/v1beta1';
/** Most mistakes that are listed of a policy. */
const MAX_REFUSALS = 20;
const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

let loaded: { readonly schema: Schema; readonly checked: ObjectSchema } | undefined;

/** The schema, which is loaded with the first policy of a file: those of a cluster need none. */
function policySchema(): { readonly schema: Schema; readonly checked: ObjectSchema } {
  if (loaded === undefined) {
    const schema = kubernetesSchema(API_VERSION, KIND) ?? {};
    loaded = { schema, checked: new ObjectSchema(schema, { unknownFieldsIn: 'document' }) };
  }
  return loaded;
}

/**
 * Whether an object was probably meant to be a NetworkPolicy, but is none: `networking.k8s.io/v1 NetworkPolcy`, `v1 NetworkPolicy`.
 * Kinds of other products, such as Calico's NetworkPolicy, are not.
 */
export function isMisnamedPolicy({ apiVersion, kind }: KubernetesObject): boolean {
  const { group } = groupVersionOf(apiVersion);
  if (kind === KIND) {
    return apiVersion !== FORMER_VERSION && group !== NETWORK_POLICIES.group && builtinKinds(group).length > 0;
  }
  return (
    group === NETWORK_POLICIES.group && builtinKind(group, kind) === undefined && nearestKey(kind, [KIND]) !== undefined
  );
}

/** Empty for a policy that API servers accept. @param namespace of a policy that names none */
export function refusalsOf(object: KubernetesObject, namespace: string): readonly PolicyRefusal[] {
  const { apiVersion, kind } = object;
  if (kind !== KIND || (apiVersion !== API_VERSION && apiVersion !== FORMER_VERSION)) {
    return [unregistered(object)];
  }
  return [
    ...wrongTypes(object),
    ...policySchema().checked.unknownFields(object).slice(0, MAX_REFUSALS).map(unknownField),
    ...errorsOf(object, namespace)
      .slice(0, MAX_REFUSALS)
      .map((error) => refusal(error, object)),
  ]
    .slice(0, MAX_REFUSALS)
    .map(({ path, message }) => ({ path, message: shortened(message, MAX_MESSAGE) }));
}

function unregistered({ apiVersion, kind }: KubernetesObject): PolicyRefusal {
  const isKindWrong = kind !== KIND;
  const hint = isKindWrong ? KIND : API_VERSION;
  const message = `no kind "${kind}" is registered for version "${apiVersion}": did you mean "${hint}"?`;
  return { path: isKindWrong ? 'kind' : 'apiVersion', message };
}

/** API servers report the first value of a wrong type, without indexes of lists. */
function wrongTypes(object: KubernetesObject): readonly PolicyRefusal[] {
  const { schema } = policySchema();
  const message = decodeError({ kind: KIND, version: NETWORK_POLICIES.version, schema: () => schema }, object);
  if (message === undefined) {
    return [];
  }
  const [, field = ''] = /Go struct field \w+\.(\S+) of type/.exec(message) ?? [];
  const found = readNetworkPolicy(asJson(object)).unread.find(({ path }) => withoutIndexes(path) === field);
  return [
    found === undefined ? { path: field, message } : { path: found.path, message: `${message}: ${found.message}` },
  ];
}

function errorsOf(object: KubernetesObject, namespace: string): readonly FieldError[] {
  const place = new CheckedValue(object);
  checkNetworkPolicy(place);
  const placed = { ...object, metadata: { namespace, ...object.metadata } };
  return [...metadataErrors(placed, NETWORK_POLICIES), ...place.errors];
}

function refusal({ field, message }: FieldError, object: KubernetesObject): PolicyRefusal {
  return { path: field, message: `${field}: ${message}${valueHint(field, message, object)}` };
}

/** What a value should probably be, where the message does not say so. */
function valueHint(field: string, message: string, object: KubernetesObject): string {
  const value = valueOf(object, field);
  const text = typeof value === 'string' ? value : '';
  const [, supported = ''] = /: supported values: (.*)$/.exec(message) ?? [];
  if (supported !== '') {
    const nearest = nearestKey(
      text,
      [...supported.matchAll(/"([^"]*)"/g)].map(([, one = '']) => one),
    );
    return nearest === undefined ? '' : `: did you mean "${nearest}"?`;
  }
  if (field.endsWith('.operator')) {
    return `: ${unknownKeyHint(text, OPERATORS)}`;
  }
  if (/\.ports\[\d+\]\.port$/.test(field) && /^\d+$/.test(text)) {
    return `: a number is written without quotes: ${text}`;
  }
  const isAddress = !text.includes('/') && parseBlock(text) !== undefined;
  return /\.(?:cidr|except\[\d+\])$/.test(field) && isAddress
    ? `: did you mean "${text}/${text.includes(':') ? 128 : 32}"?`
    : '';
}

function valueOf(object: KubernetesObject, field: string): JsonValue | undefined {
  return fieldPathOf(field).reduce<JsonValue | undefined>(
    (value, key) =>
      Array.isArray(value) ? value[Number(key)] : isJsonObject(value) ? own(value, String(key)) : undefined,
    object as unknown as JsonValue,
  );
}

function unknownField(path: string): PolicyRefusal {
  const end = path.lastIndexOf('.');
  const [above, key] = [withoutIndexes(path.slice(0, Math.max(0, end))), path.slice(end + 1)];
  return { path, message: `unknown field "${path}": ${fieldHint(above, key)}` };
}

/** A field of nearly the same name, else the place where this field belongs, else the fields that there are. */
function fieldHint(above: string, key: string): string {
  const fields = fieldsOf(policySchema().schema);
  const known = fields.get(above) ?? [];
  const places = [...fields].flatMap(([place, names]) =>
    names.includes(key) && place.startsWith('spec') ? [place] : [],
  );
  const [nearest] = places.toSorted((one, other) => commonLength(other, above) - commonLength(one, above));
  return nearest === undefined || nearestKey(key, known) !== undefined
    ? unknownKeyHint(key, known)
    : `it belongs in ${nearest}`;
}

/** The names of the fields of each object, by its path without indexes. */
function fieldsOf(schema: Schema, path = ''): ReadonlyMap<string, readonly string[]> {
  const { properties, items } = schema;
  if (items !== undefined) {
    return fieldsOf(items, path);
  }
  const inner = Object.entries(properties ?? {}).flatMap(([name, one]) => [
    ...fieldsOf(one, path === '' ? name : `${path}.${name}`),
  ]);
  return new Map([...(properties === undefined ? [] : [[path, Object.keys(properties)] as const]), ...inner]);
}

function withoutIndexes(path: string): string {
  return path.replaceAll(/\[\d+\]/g, '');
}

/** How many names two paths begin with in common. */
function commonLength(one: string, other: string): number {
  const names = other.split('.');
  const different = one.split('.').findIndex((name, index) => name !== names[index]);
  return different === -1 ? one.split('.').length : different;
}
