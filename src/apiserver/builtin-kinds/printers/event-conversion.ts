import type { KubernetesObject } from '../../../resources/index.ts';

/** The names of fields in `v1`, by their name in `events.k8s.io/v1`. */
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
 * Converts an event to another version. `v1` and `events.k8s.io/v1` are two representations of the same objects. Returns the
 * object itself when it is of that version.
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
