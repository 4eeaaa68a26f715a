import { typeOf, valueText } from '../../go/index.ts';
import { checkDepth, isJsonObject, PatchError } from '../../resources/index.ts';
import type { JsonObject, JsonValue, Schema } from '../../resources/index.ts';
import { ordered, partition } from './strategic-order.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const DELETE_FROM = '$deleteFromPrimitiveList';
const ELEMENT_ORDER = '$setElementOrder';

/**
 * Applies a strategic merge patch
 * (https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md).
 * Lists with `x-kubernetes-patch-strategy: merge` are merged by their key (`x-kubernetes-patch-merge-key`). Directives (`$patch`,
 * `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`) express other changes. The inputs are not changed; the
 * result shares unchanged parts with them. Throws PatchError.
 */
export function applyStrategicMergePatch(object: JsonObject, patch: JsonObject, schema: Schema): JsonObject {
  return mergeObjects(object, patch, schema, 0);
}

function mergeObjects(object: JsonObject, patch: JsonObject, schema: Schema | undefined, depth: number): JsonObject {
  checkDepth(depth);
  if (Object.hasOwn(patch, DIRECTIVE)) {
    return directed(patch);
  }
  const result = new Map(Object.entries(object));
  const changes = new Map(Object.entries(patch));
  retainKeys(result, changes);
  for (const key of [...changes.keys()].filter((one) => one.startsWith(ELEMENT_ORDER))) {
    orderElements(result, changes, key, schema, depth);
  }
  for (const [key, value] of changes) {
    if (key.startsWith(DELETE_FROM)) {
      deleteElements(result, fieldOf(key, DELETE_FROM), value, schema, depth);
    } else if (value === null) {
      result.delete(key);
    } else {
      mergeField(result, key, value, schema, depth);
    }
  }
  return Object.fromEntries(result);
}

/** Applies `$patch` of an object: `replace` replaces the object by the rest of the patch, `delete` empties it. */
function directed(patch: JsonObject): JsonObject {
  const { [DIRECTIVE]: directive = null, ...rest } = patch;
  if (directive === 'replace') {
    return rest;
  }
  if (directive === 'delete') {
    return {};
  }
  throw unknownDirective(directive, patch);
}

/** Removes the keys that `$retainKeys` does not list. It must list all keys of the patch. */
function retainKeys(result: Map<string, JsonValue>, changes: Map<string, JsonValue>): void {
  const list = changes.get(RETAIN_KEYS);
  if (list === undefined) {
    return;
  }
  changes.delete(RETAIN_KEYS);
  const retained = new Set(Array.isArray(list) ? list : []);
  const isStray = ([key, value]: readonly [string, JsonValue]): boolean =>
    value !== null && !key.startsWith(DELETE_FROM) && !key.startsWith(ELEMENT_ORDER) && !retained.has(key);
  if (!Array.isArray(list) || [...changes].some(isStray)) {
    throw new PatchError('malformed', 'invalid patch format of retainKeys');
  }
  for (const key of result.keys()) {
    if (!retained.has(key)) {
      result.delete(key);
    }
  }
}

/** Merges a list that has a `$setElementOrder` directive, and sorts it as the directive says. */
function orderElements(
  result: Map<string, JsonValue>,
  changes: Map<string, JsonValue>,
  directive: string,
  schema: Schema | undefined,
  depth: number,
): void {
  const order = asList(changes.get(directive) ?? null);
  changes.delete(directive);
  const field = fieldOf(directive, ELEMENT_ORDER);
  const before = result.has(field) ? asList(result.get(field) ?? null) : undefined;
  const patch = changes.has(field) ? asList(changes.get(field) ?? null) : undefined;
  const meta = patchMetaOf(schema, field);
  checkOrder(patch ?? [], order, meta.mergeKey);
  if (before === undefined && patch === undefined) {
    return;
  }
  const merged =
    before === undefined
      ? (withoutDirectives(patch ?? [], depth + 1) as readonly JsonValue[])
      : patch === undefined
        ? before
        : mergeLists(before, patch, meta, depth + 1);
  const [mine, others] = partition(merged, order, meta.mergeKey);
  elementKindOf([...(before ?? []), ...(patch ?? [])]);
  result.set(field, ordered(mine, others, order, before ?? [], meta.mergeKey));
  changes.delete(field);
}

/** Checks that the elements of the patch have the order of `$setElementOrder`. */
function checkOrder(patch: readonly JsonValue[], order: readonly JsonValue[], mergeKey: string | undefined): void {
  if (patch.length === 0 || order.length === 0) {
    return;
  }
  const kept = mergeKey === undefined ? patch : patch.filter((one) => !Object.hasOwn(asObject(one), DIRECTIVE));
  let at = 0;
  for (const position of order) {
    const element = kept[at];
    if (element === undefined) {
      return;
    }
    if (keyIn(element, mergeKey) === keyIn(position, mergeKey)) {
      at++;
    }
  }
  if (at < kept.length) {
    const text = `The order in patch list:\n${valueText(patch)}\n doesn't match ${ELEMENT_ORDER} list:\n${valueText(order)}\n`;
    throw new PatchError('failed', text);
  }
}

function deleteElements(
  result: Map<string, JsonValue>,
  field: string,
  value: JsonValue,
  schema: Schema | undefined,
  depth: number,
): void {
  const before = result.get(field);
  if (value === null) {
    result.delete(field);
  } else if (Array.isArray(before) && Array.isArray(value)) {
    const meta = patchMetaOf(schema, field);
    if (elementKindOf([...before, ...value]) === 'object') {
      result.set(field, mergeLists(before, value, { ...meta, strategy: 'merge' }, depth + 1));
    } else {
      const removed = new Set(value);
      result.set(
        field,
        before.filter((one) => !removed.has(one)),
      );
    }
  }
}

function mergeField(
  result: Map<string, JsonValue>,
  key: string,
  value: JsonValue,
  schema: Schema | undefined,
  depth: number,
): void {
  const before = result.get(key);
  if (isJsonObject(before) && isJsonObject(value)) {
    const meta = patchMetaOf(schema, key);
    result.set(key, meta.strategy === 'replace' ? value : mergeObjects(before, value, meta.schema, depth + 1));
  } else if (Array.isArray(before) && Array.isArray(value)) {
    const meta = patchMetaOf(schema, key);
    result.set(key, meta.strategy === 'merge' ? mergeLists(before, value, meta, depth + 1) : value);
  } else {
    const kept = withoutDirectives(withoutNulls(value, depth + 1), depth + 1);
    if (kept === undefined) {
      result.delete(key);
    } else {
      result.set(key, kept);
    }
  }
}

function mergeLists(
  before: readonly JsonValue[],
  patch: readonly JsonValue[],
  meta: PatchMeta,
  depth: number,
): JsonValue[] {
  if (meta.strategy !== 'merge') {
    return [...patch];
  }
  if (before.length === 0 && patch.length === 0) {
    return [];
  }
  if (elementKindOf([...before, ...patch]) !== 'object') {
    const all = [...new Set([...before, ...patch])];
    const [mine, others] = partition(all, patch, undefined);
    return ordered(mine, others, patch, before, undefined);
  }
  const { mergeKey } = meta;
  if (mergeKey === undefined) {
    throw new PatchError('failed', 'cannot merge lists without merge key for struct');
  }
  const { elements, changes } = withoutDirected(before.map(asObject), patch.map(asObject), mergeKey);
  const merged = [...elements];
  const places = new Map<JsonValue, number>();
  for (const [at, element] of elements.entries()) {
    const key = Object.hasOwn(element, mergeKey) ? element[mergeKey] : undefined;
    if (key !== undefined && !places.has(key)) {
      places.set(key, at);
    }
  }
  for (const change of changes) {
    const key = keyIn(change, mergeKey);
    const at = places.get(key);
    const element = at === undefined ? undefined : merged[at];
    if (at === undefined || element === undefined) {
      places.set(key, merged.length);
      merged.push(change);
    } else {
      merged[at] = mergeObjects(element, change, meta.schema, depth + 1);
    }
  }
  const [mine, others] = partition(merged, changes, mergeKey);
  return ordered(mine, others, changes, elements, mergeKey);
}

/** Applies the `$patch` directives of elements. Returns the remaining patch, and the list to merge it into. */
function withoutDirected(
  before: readonly JsonObject[],
  patch: readonly JsonObject[],
  mergeKey: string,
): { readonly elements: readonly JsonObject[]; readonly changes: readonly JsonObject[] } {
  const deleted = new Set<JsonValue>();
  let isReplaced = false;
  const changes: JsonObject[] = [];
  for (const element of patch) {
    const directive = Object.hasOwn(element, DIRECTIVE) ? element[DIRECTIVE] : undefined;
    if (directive === undefined) {
      changes.push(element);
    } else if (directive === 'delete') {
      deleted.add(keyIn(element, mergeKey));
    } else if (directive === 'replace') {
      isReplaced = true;
    } else if (directive === 'merge') {
      throw new PatchError('failed', 'merging lists cannot yet be specified in the patch');
    } else {
      throw unknownDirective(directive, element);
    }
  }
  const isKept = (one: JsonObject): boolean => !Object.hasOwn(one, mergeKey) || !deleted.has(one[mergeKey] ?? null);
  return isReplaced ? { elements: changes, changes: [] } : { elements: before.filter(isKept), changes };
}

/** How a field is patched. The schema of a list is that of its elements. */
interface PatchMeta {
  /** Without the strategy `retainKeys`, which matters to clients only: they send the directive. */
  readonly strategy: 'merge' | 'replace' | undefined;
  readonly mergeKey: string | undefined;
  readonly schema: Schema | undefined;
}

function patchMetaOf(schema: Schema | undefined, field: string): PatchMeta {
  const properties = schema?.properties;
  const additional = schema?.additionalProperties;
  const own = properties !== undefined && Object.hasOwn(properties, field) ? properties[field] : undefined;
  const found = own ?? (typeof additional === 'object' ? additional : undefined);
  if (found === undefined && properties !== undefined && Object.keys(properties).length > 0) {
    throw new PatchError('failed', `unable to find api field in struct for the json field ${JSON.stringify(field)}`);
  }
  const strategies = (own?.['x-kubernetes-patch-strategy'] ?? '').split(',');
  return {
    strategy: strategies.includes('merge') ? 'merge' : strategies.includes('replace') ? 'replace' : undefined,
    mergeKey: own?.['x-kubernetes-patch-merge-key'],
    schema: soleSchema(found?.items ?? found),
  };
}

/** Resolves an `allOf` with one schema, by which a field with its own description refers to a shared type. */
function soleSchema(schema: Schema | undefined): Schema | undefined {
  const [only, ...others] = schema?.allOf ?? [];
  return schema?.properties === undefined && only !== undefined && others.length === 0 ? only : schema;
}

function elementKindOf(elements: readonly JsonValue[]): string {
  const kinds = new Set(
    elements.map((one) => (isJsonObject(one) ? 'object' : Array.isArray(one) ? 'list' : typeof one)),
  );
  const [kind] = kinds;
  if (kind === undefined) {
    throw new PatchError('failed', 'no elements in any of the given slices');
  }
  if (kinds.has('list')) {
    throw new PatchError('does-not-apply', 'lists of lists are not supported');
  }
  if (kinds.size > 1) {
    throw new PatchError('failed', `list element types are not identical: ${valueText([elements])}`);
  }
  return kind;
}

/** The identity of an element: its merge key, or the element itself in a list without a merge key. */
function keyIn(element: JsonValue, mergeKey: string | undefined): JsonValue {
  if (mergeKey === undefined) {
    return element;
  }
  const object = asObject(element);
  const key = Object.hasOwn(object, mergeKey) ? object[mergeKey] : undefined;
  if (key === undefined) {
    throw new PatchError('failed', `map: ${valueText(object)} does not contain declared merge key: ${mergeKey}`);
  }
  return key;
}

/** The field that a directive is for: `$setElementOrder/FIELD`. */
function fieldOf(directive: string, prefix: string): string {
  if (!directive.startsWith(`${prefix}/`)) {
    const list = prefix === DELETE_FROM ? 'primitive' : 'setElementOrder';
    throw new PatchError('malformed', `invalid patch format of ${list} list`);
  }
  return directive.slice(prefix.length + 1);
}

function asList(value: JsonValue): readonly JsonValue[] {
  if (!Array.isArray(value)) {
    throw new PatchError('failed', `expected a []interface {}, but received a ${typeText(value)}`);
  }
  return value;
}

function asObject(value: JsonValue): JsonObject {
  if (!isJsonObject(value)) {
    throw new PatchError('failed', `expected a map[string]interface {}, but received a ${typeText(value)}`);
  }
  return value;
}

/** Go's type of a value, as `%s` prints it. */
function typeText(value: JsonValue): string {
  return value === null ? '%!s(<nil>)' : typeOf(value);
}

/** A copy without null fields. */
function withoutNulls(value: JsonValue, depth: number): JsonValue {
  checkDepth(depth);
  if (Array.isArray(value)) {
    return value.map((one) => withoutNulls(one, depth + 1));
  }
  if (!isJsonObject(value)) {
    return value;
  }
  const entries = Object.entries(value).filter(([, one]) => one !== null);
  return Object.fromEntries(entries.map(([key, one]) => [key, withoutNulls(one, depth + 1)]));
}

/** A copy without directives; undefined for an object that is a directive itself. */
function withoutDirectives(value: JsonValue | readonly JsonValue[], depth: number): JsonValue | undefined {
  checkDepth(depth);
  if (Array.isArray(value)) {
    return value.map((one: JsonValue) => withoutDirectives(one, depth + 1)).filter((one) => one !== undefined);
  }
  if (!isJsonObject(value)) {
    return value as JsonValue;
  }
  if (Object.hasOwn(value, DIRECTIVE)) {
    return undefined;
  }
  const entries = Object.entries(value).flatMap(([key, one]) => {
    const kept = withoutDirectives(one, depth + 1);
    return kept === undefined ? [] : [[key, kept] as const];
  });
  return Object.fromEntries(entries);
}

function unknownDirective(directive: JsonValue, patch: JsonObject): PatchError {
  return new PatchError('failed', `unknown patch type: ${valueText(directive)} in map: ${valueText(patch)}`);
}
