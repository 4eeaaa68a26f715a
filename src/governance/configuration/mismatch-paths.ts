import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { fieldEquivalence } from './equivalent-objects.ts';
import type { EquivalenceContext } from './equivalent-objects.ts';

/** Maximum number of paths that are reported for one object. */
export const MAX_MISMATCH_PATHS = 20;
/** A field that needs no quotes in a path. */
const PLAIN_FIELD = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** The paths below `path` at which the merged value differs from the live one; a list is one place. */
export function mismatchPaths(
  merged: JsonValue,
  live: JsonValue | undefined,
  path: string,
  context: EquivalenceContext,
): readonly string[] {
  const paths: string[] = [];
  collect(merged, live, path, context, paths);
  return paths;
}

function collect(
  merged: JsonValue,
  live: JsonValue | undefined,
  path: string,
  context: EquivalenceContext,
  paths: string[],
): void {
  if (paths.length >= MAX_MISMATCH_PATHS) {
    return;
  }
  if (!isJsonObject(merged) || !isJsonObject(live)) {
    paths.push(path);
    return;
  }
  for (const key of differingKeys(merged, live, context)) {
    const value = own(merged, key);
    const place = `${path}${PLAIN_FIELD.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`}`;
    // A field that only the live object has is to be removed.
    collect(value ?? null, value === undefined ? null : own(live, key), place, context, paths);
  }
}

function differingKeys(merged: JsonObject, live: JsonObject, context: EquivalenceContext): readonly string[] {
  const changed = Object.entries(merged).filter(
    ([key, value]) => fieldEquivalence(value, own(live, key), context) === 'different',
  );
  const removed = Object.keys(live).filter((key) => !Object.hasOwn(merged, key));
  return [...changed.map(([key]) => key), ...removed].sort();
}
