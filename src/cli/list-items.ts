// Lists of Kubernetes objects in manifests: `List`, and lists of one kind such as `PodList`.
import { isJsonObject, type JsonObject, type JsonValue, own, textOf } from '../values/index.ts';
import { CliError } from './errors.ts';

/** A value of a manifest, and its path in the document. */
export interface ListItem {
  readonly value: unknown;
  readonly path: readonly (string | number)[];
}

/** A document, or its items if it is a List, also those of Lists in it. @throws CliError as {@link listItems} does */
export function itemsOf(
  value: unknown,
  placeOf: (path: ListItem['path']) => string,
  path: ListItem['path'] = [],
): readonly ListItem[] {
  const items = isJsonObject(value) ? listItems(value, () => placeOf(path)) : undefined;
  return items === undefined
    ? [{ value, path }]
    : items.flatMap((item, index) => itemsOf(item, placeOf, [...path, 'items', index]));
}

/**
 * The items of a List; undefined for other objects, such as those of a custom kind `AllowList`. As in Go, null is empty.
 * @param place of the object, for messages
 * @throws CliError when the items of a List are something else
 */
export function listItems(object: JsonObject, place: () => string): readonly unknown[] | undefined {
  const kind = textOf(own(object, 'kind'));
  const items = own(object, 'items');
  if (!kind.endsWith('List')) {
    return undefined;
  }
  if (Array.isArray(items)) {
    return items.map((item) => withType(item, object));
  }
  if (kind === 'List' && items !== null && items !== undefined) {
    throw new CliError(`${place()}: items of a List: expected a list of objects, got ${describeType(items)}`);
  }
  return kind === 'List' || items === null ? [] : undefined;
}

function describeType(value: JsonValue): string {
  return isJsonObject(value) ? 'a mapping' : `a ${typeof value}`;
}

/** Items of a PodList need not repeat that they are Pods. */
function withType(item: unknown, list: JsonObject): unknown {
  const kind = textOf(own(list, 'kind')).slice(0, -'List'.length);
  return isJsonObject(item) && kind !== '' && own(item, 'kind') === undefined && own(item, 'apiVersion') === undefined
    ? { apiVersion: textOf(own(list, 'apiVersion')), kind, ...item }
    : item;
}
