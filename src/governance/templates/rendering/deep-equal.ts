import { isGoList, isGoObject, kindOf, valueText } from '../../../go/index.ts';
import { chargeValue, stepsToRead } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import type { TemplateMeter } from '../../../go/templates/index.ts';

/** Whether two values are equal with their types, as `reflect.DeepEqual`; charged by the size of the first. */
export function deepEqual(a: GoValue, b: GoValue, meter: Pick<TemplateMeter, 'steps'>): boolean {
  // Texts of different lengths are told apart at once.
  const isCompared = typeof a === 'string' && typeof b === 'string' && a.length === b.length;
  meter.steps(1 + (isCompared ? stepsToRead(a) : 0));
  chargeValue(a, meter);
  return isSame(a, b);
}

function isSame(a: GoValue, b: GoValue): boolean {
  if (isGoList(a)) {
    return isGoList(b) && a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  }
  if (isGoObject(a)) {
    return (
      isGoObject(b) &&
      Object.keys(a).length === Object.keys(b).length &&
      Object.entries(a).every(([key, item]) => Object.hasOwn(b, key) && isSame(item, b[key]))
    );
  }
  return kindOf(a) === kindOf(b) && valueText(a) === valueText(b);
}
