import { parseQuantity, Quantity } from '../../cel/index.ts';

/** Quantities that are canonical for sure: at most three digits, and a unit. */
const CANONICAL = /^[1-9]\d{0,2}(?:[mkMGTPE]|[KMGTPE]i)?$/;

/** The quantity of a JSON value; undefined when it is malformed. */
export function quantityOf(value: unknown): Quantity | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') {
    return undefined;
  }
  const parsed = parseQuantity(String(value));
  return parsed instanceof Quantity ? parsed : undefined;
}

/** A quantity in canonical form: `1000m` is `1`, `1024Mi` is `1Gi`. Returns other values unchanged. */
export function canonicalQuantity(value: unknown): unknown {
  return typeof value === 'string' && CANONICAL.test(value) ? value : (quantityOf(value)?.toString() ?? value);
}
