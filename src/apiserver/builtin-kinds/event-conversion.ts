import type { KubernetesObject } from '../../resources/index.ts';

/** Fields of an event in `events.k8s.io/v1`, with their names in `v1`. */
const NAMES: Readonly<Record<string, string>> = {
  regarding: 'involvedObject',
  note: 'message',
  reportingController: 'reportingComponent',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
};
const OLD_NAMES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(NAMES).map(([name, oldName]) => [oldName, name]),
);

/**
 * The same event in the other of the two groups that have it: `v1` and `events.k8s.io/v1` are two views of one object.
 * Returns the object itself when it is of that version.
 */
export function convertEvent(event: KubernetesObject, apiVersion: 'v1' | 'events.k8s.io/v1'): KubernetesObject {
  if (event.apiVersion === apiVersion) {
    return event;
  }
  const names = apiVersion === 'v1' ? NAMES : OLD_NAMES;
  const renamed = Object.entries(event).map(([field, value]) => [
    Object.hasOwn(names, field) ? names[field] : field,
    value,
  ]);
  return { ...(Object.fromEntries(renamed) as KubernetesObject), apiVersion };
}
