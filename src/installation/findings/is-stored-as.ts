import { isJsonObject, type JsonValue, own } from '../../resources/index.ts';

/**
 * Whether a stored value is what was applied, but for empty fields: API servers leave out `nullable: false` and `properties: {}`,
 * and set such fields where they are missing.
 */
export function isStoredAs(stored: JsonValue | undefined, applied: JsonValue | undefined): boolean {
  if (isJsonObject(stored) && isJsonObject(applied)) {
    const names = new Set([...Object.keys(stored), ...Object.keys(applied)]);
    return [...names].every((name) => isStoredAs(own(stored, name), own(applied, name)));
  }
  if (Array.isArray(stored) && Array.isArray(applied)) {
    return stored.length === applied.length && stored.every((one, index) => isStoredAs(one, applied[index]));
  }
  return stored === applied || (isEmpty(stored) && isEmpty(applied));
}

function isEmpty(value: JsonValue | undefined): boolean {
  return (
    value === undefined ||
    value === null ||
    value === false ||
    value === '' ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  );
}
