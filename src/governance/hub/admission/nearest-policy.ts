import type { Policy } from '../../../resources/index.ts';
import type { ObjectCache } from '../../../runtime/index.ts';
import { nearestKey } from '../../../values/index.ts';

/** Maximum number of names that a missing name is compared with. */
const MAX_COMPARED_NAMES = 1000;
/** Maximum difference in length between a name and its typo. */
const MAX_TYPO_LENGTH = 2;

/** The name of the Policy in a namespace that a missing name most likely means. */
export function nearestPolicy(policies: ObjectCache<Policy>, namespace: string, name: string): string | undefined {
  const names = policies
    .list(namespace)
    .map(({ metadata }) => metadata.name ?? '')
    .filter((known) => Math.abs(known.length - name.length) <= MAX_TYPO_LENGTH)
    .slice(0, MAX_COMPARED_NAMES);
  return nearestKey(name, names);
}
