import { codePointCount } from '../code-point-count.ts';
import { CelBoxed, CelMap, CelObject } from '../value.ts';
import type { CelValue } from '../value.ts';

/** Code points, bytes, elements or entries of a value as costs count them; 1 for what has no size. */
export function sizeOf(value: CelValue): number {
  if (typeof value === 'string') {
    return codePointCount(value);
  }
  if (typeof value !== 'object' || value === null) {
    return 1;
  }
  if (Array.isArray(value) || value instanceof Uint8Array) {
    return value.length;
  }
  if (!(value instanceof CelBoxed)) {
    return Object.keys(value).length;
  }
  if (value instanceof CelMap) {
    return value.entries.size;
  }
  return value instanceof CelObject ? value.costSize : 1;
}
