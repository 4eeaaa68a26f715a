import { valueAt } from '../../../values/index.ts';
import { quantityOf } from '../../../resources/decoding/index.ts';

/** Amounts of bytes that are no whole numbers, such as `100m` of memory, where `100Mi` is meant. @param names of resources */
export function fractionalWarnings(amounts: unknown, path: string, names: readonly string[]): readonly string[] {
  return names.flatMap((name) => {
    const quantity = quantityOf(valueAt(amounts, name));
    const text = quantity?.toString() ?? '';
    // In canonical form, thousandths have their own suffix, and smaller parts are rounded up to them.
    return /\d[mun]$/u.test(text)
      ? [`${path}[${name}]: fractional byte value ${JSON.stringify(text)} is invalid, must be an integer`]
      : [];
  });
}
