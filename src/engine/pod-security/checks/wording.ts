import { compareStrings } from '../../../go/index.ts';
import type { Holder } from '../../pods/pod.ts';

/** `"a", "b"`. Not escaped, as in Kubernetes. */
export function quoted(items: readonly string[]): string {
  return items.map((item) => `"${item}"`).join(', ');
}

export function plural(items: readonly unknown[], one: string, many: string): string {
  return items.length === 1 ? one : many;
}

/** `container "a"`, or `containers "a", "b"`. */
export function namedContainers(names: readonly string[]): string {
  return `${plural(names, 'container', 'containers')} ${quoted(names)}`;
}

/** `pod and containers "a", "b"`: those among `holders`, then `others`. */
export function settersOf(holders: readonly Holder[], others: readonly string[] = []): string {
  const names = containerNames(holders);
  const pod = holders.length > names.length ? ['pod'] : [];
  return [...pod, ...(names.length > 0 ? [namedContainers(names)] : []), ...others].join(' and ');
}

/** Names of the containers among `holders`, in their order. */
export function containerNames(holders: readonly Holder[]): readonly string[] {
  return holders.filter(({ isPod }) => !isPod).map(({ name }) => name);
}

/** Paths of a field of several holders. */
export function fieldsOf(holders: readonly Holder[], field: string): readonly string[] {
  return holders.map(({ path }) => `${path}.${field}`);
}

/** Sorted like in Go, without duplicates. */
export function sortedSet(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort(compareStrings);
}
