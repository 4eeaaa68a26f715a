import { parseQuantity, Quantity } from '../../cel/index.ts';

/** The most common canonical quantities, at most three digits and a unit: they need no parser. */
const CANONICAL = /^[1-9]\d{0,2}(?:[mkMGTPE]|[KMGTPE]i)?$/;

/** Parses a quantity. Undefined when it is malformed. */
export function quantityOf(value: unknown): Quantity | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') {
    return undefined;
  }
  const parsed = parseQuantity(String(value));
  return parsed instanceof Quantity ? parsed : undefined;
}

/** Converts a quantity to its canonical form: `1000m` to `1`, `1024Mi` to `1Gi`. Returns other values unchanged. */
export function canonicalQuantity(value: unknown): unknown {
  return typeof value === 'string' && CANONICAL.test(value) ? value : (quantityOf(value)?.toString() ?? value);
}
