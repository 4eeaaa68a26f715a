// How the space for copies is shared: what serves is never removed for others, so owners have bounds.
import { CLUSTER } from './wanted-copies.ts';

/** The part of all namespaces together, so that policies of the cluster always have the other half. */
const NAMESPACES_SHARE = 1 / 2;
/** The part of one namespace: as of the memory for policies. */
const NAMESPACE_SHARE = 1 / 4;
/** What a copy counts at least, which bounds their number. Bytes. */
export const MIN_COPY_BYTES = 64 * 1024;

/** Bytes of copies that serve, by owner. */
export type UsedBytes = ReadonlyMap<string, number>;

/** Whether a copy of an owner fits beside those that stay. */
export function hasRoom(size: number, owner: string, used: UsedBytes, maxBytes: number): boolean {
  const bytes = Math.max(size, MIN_COPY_BYTES);
  const total = sum(used.values());
  if (total + bytes > maxBytes) {
    return false;
  }
  const ofNamespaces = total - (used.get(CLUSTER) ?? 0);
  return (
    owner === CLUSTER ||
    (ofNamespaces + bytes <= maxBytes * NAMESPACES_SHARE &&
      (used.get(owner) ?? 0) + bytes <= maxBytes * NAMESPACE_SHARE)
  );
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) {
    total += value;
  }
  return total;
}
