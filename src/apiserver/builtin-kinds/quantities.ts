import { parseQuantity, Quantity } from '../../cel/index.ts';

/** Quantities that are written as they are: at most three digits, and a unit. */
const CANONICAL = /^[1-9]\d{0,2}(?:[mkMGTPE]|[KMGTPE]i)?$/;

/** The amount that a JSON value of a field for quantities stands for; undefined when it is none. */
export function quantityOf(value: unknown): Quantity | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') {
    return undefined;
  }
  const parsed = parseQuantity(String(value));
  return parsed instanceof Quantity ? parsed : undefined;
}

/** A quantity in its shortest form: `1000m` is `1`, `1024Mi` is `1Gi`. Returns what is no quantity as it is. */
export function canonicalQuantity(value: unknown): unknown {
  return typeof value === 'string' && CANONICAL.test(value) ? value : (quantityOf(value)?.toString() ?? value);
}
