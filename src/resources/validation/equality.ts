import { isJsonObject } from '../../values/index.ts';

/** Deep equality of JSON values of any depth; the order of keys does not count. */
export function equalJson(left: unknown, right: unknown): boolean {
  const open: [unknown, unknown][] = [[left, right]];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [a, b] = pair;
    if (a === b) {
      continue;
    }
    if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) {
      for (const [index, element] of a.entries()) {
        open.push([element, b[index]]);
      }
    } else if (isJsonObject(a) && isJsonObject(b) && Object.keys(a).length === Object.keys(b).length) {
      for (const key of Object.keys(a)) {
        if (!Object.hasOwn(b, key)) {
          return false;
        }
        open.push([a[key], b[key]]);
      }
    } else {
      return false;
    }
  }
  return true;
}
