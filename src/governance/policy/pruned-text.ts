import { textOf, valueAt } from '../../resources/index.ts';
import { listed } from '../../values/index.ts';

/** Objects that an event names. */
const MAX_NAMED_OBJECTS = 10;

/**
 * What a ConfigurationPolicy deletes, for events: `pruneObjectBehavior DeleteAll: ConfigMap a, ConfigMap b and 3 more`.
 * Empty if it deletes nothing.
 * @param objects entries of `status.relatedObjects`, perhaps not well-formed
 */
export function prunedText(pruneObjectBehavior: string, objects: readonly unknown[]): string {
  const names = objects.flatMap((related) => {
    const name = textOf(valueAt(related, 'object', 'metadata', 'name'));
    return name === '' ? [] : [`${textOf(valueAt(related, 'object', 'kind'))} ${name}`];
  });
  if (names.length === 0) {
    return '';
  }
  return `pruneObjectBehavior ${pruneObjectBehavior}: ${listed(names, MAX_NAMED_OBJECTS)}`;
}
