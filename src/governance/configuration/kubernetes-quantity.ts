import { parseQuantity, Quantity } from '../../cel/quantity/index.ts';

/** The quantity that a text denotes; undefined if it is none. */
export function parseKubernetesQuantity(text: string): Quantity | undefined {
  const quantity = parseQuantity(text);
  return quantity instanceof Quantity ? quantity : undefined;
}
