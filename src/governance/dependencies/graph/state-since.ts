import type { KubernetesObject } from '../../../resources/index.ts';
import { isJsonObject, own, textOf, valueAt } from '../../../values/index.ts';

/** The last message of an object, and since when it has its state. */
export interface StateSince {
  readonly message: string;
  /** Empty if not known. RFC 3339. */
  readonly since: string;
}

/**
 * Reads the history of a policy or of a template. The time is that of the oldest message of the newest messages with the
 * same state.
 */
export function stateSince(object: KubernetesObject, state: string): StateSince {
  const newest = historyOf(object, state);
  const other = newest.findIndex(({ message }) => stateOf(message) !== state);
  const same = other === -1 ? newest : newest.slice(0, other);
  const message = same[0]?.message ?? '';
  return {
    message: message.replace(/^[A-Za-z]+; */u, '').trim(),
    since: wholeSeconds(same.at(-1)?.lastTimestamp ?? ''),
  };
}

interface Entry {
  readonly message: string;
  readonly lastTimestamp: string;
}

/** The history of the object, or of the first template with the state of its policy. */
function historyOf(object: KubernetesObject, state: string): readonly Entry[] {
  const details = valueAt(object, 'status', 'details');
  const detail = Array.isArray(details) ? details.find((each) => valueAt(each, 'compliant') === state) : undefined;
  const list = valueAt(detail, 'history') ?? valueAt(object, 'status', 'history');
  return (Array.isArray(list) ? list.filter(isJsonObject) : []).map((entry) => ({
    message: textOf(own(entry, 'message')),
    lastTimestamp: textOf(own(entry, 'lastTimestamp')),
  }));
}

function stateOf(message: string): string {
  return message.split(';', 1)[0] ?? '';
}

function wholeSeconds(time: string): string {
  return time.replace(/\.\d+Z$/u, 'Z');
}
