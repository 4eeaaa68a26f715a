import { codePointCount } from '../model/code-point-count.ts';
import { CelBoxed, CelMap, CelObject } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';

/** Size of a value for costs, in code points, bytes, elements or entries; 1 for values without a size. */
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
