import { compareStrings } from '../../go/index.ts';
import { isJsonObject } from '../../resources/index.ts';
import type { ManagedFieldsEntry } from '../../resources/index.ts';
import { FieldSet, MergeError } from '../../resources/structured-merge/index.ts';

/** A field manager with the fields that it owns. */
export interface Manager {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
  /** Time of its last change, RFC 3339. Undefined when it never changed a field. */
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** The managers of an object by {@link managerId}. */
export type Managers = Map<string, Manager>;

/**
 * The identity of a manager: name, operation, subresource, and for updates the version. JSON, because conflicts are sorted
 * by this text in messages.
 */
export function managerId(manager: Omit<Manager, 'fields' | 'time'>): string {
  const { manager: name, operation, apiVersion, subresource } = manager;
  return JSON.stringify({
    ...(name === '' ? {} : { manager: name }),
    operation,
    ...(operation === 'Apply' || apiVersion === '' ? {} : { apiVersion }),
    ...(subresource === '' ? {} : { subresource }),
  });
}

/** Reads `metadata.managedFields`. Throws MergeError `fields-malformed`. */
export function parseManagers(entries: unknown): Managers {
  const managers: Managers = new Map();
  for (const [index, entry] of (Array.isArray(entries) ? (entries as readonly unknown[]) : []).entries()) {
    const manager = parseManager(isJsonObject(entry) ? entry : {}, index);
    managers.set(managerId(manager), manager);
  }
  return managers;
}

function parseManager(entry: Readonly<Record<string, unknown>>, index: number): Manager {
  const operation = textOf(entry, 'operation');
  if (operation !== 'Apply' && operation !== 'Update') {
    throw new MergeError('fields-malformed', 'operation must be `Apply` or `Update`');
  }
  const apiVersion = textOf(entry, 'apiVersion');
  if (apiVersion === '') {
    throw new MergeError('fields-malformed', 'apiVersion must not be empty');
  }
  const fieldsType = textOf(entry, 'fieldsType');
  if (fieldsType !== 'FieldsV1') {
    const problem = fieldsType === '' ? 'missing fieldsType' : `invalid fieldsType ${JSON.stringify(fieldsType)}`;
    throw new MergeError('fields-malformed', `${problem} in managed fields entry ${index}`);
  }
  const time = textOf(entry, 'time');
  return {
    manager: textOf(entry, 'manager'),
    operation,
    apiVersion,
    subresource: textOf(entry, 'subresource'),
    time: time === '' ? undefined : time,
    fields: FieldSet.parse(Object.hasOwn(entry, 'fieldsV1') ? (entry['fieldsV1'] ?? {}) : {}),
  };
}

function textOf(entry: Readonly<Record<string, unknown>>, key: string): string {
  const value = Object.hasOwn(entry, key) ? entry[key] : undefined;
  return typeof value === 'string' ? value : '';
}

/** Whether the managedFields of a request remove all managers: `[{}]`, and `[]` for builtin kinds. */
export function isReset(entries: unknown, origin: 'builtin' | 'custom'): boolean {
  if (!Array.isArray(entries)) {
    return false;
  }
  const [only, ...others] = entries as readonly unknown[];
  return entries.length === 0
    ? origin === 'builtin'
    : others.length === 0 && isJsonObject(only) && Object.keys(only).length === 0;
}

/** The managers as `metadata.managedFields`: Apply first, then by time and name. */
export function managedFieldsOf(managers: Managers): ManagedFieldsEntry[] {
  return [...managers.values()]
    .sort(compareManagers)
    .map(({ manager, operation, apiVersion, time, fields, subresource }) => ({
      ...(manager === '' ? {} : { manager }),
      operation,
      apiVersion,
      ...(time === undefined ? {} : { time }),
      fieldsType: 'FieldsV1',
      fieldsV1: fields.toFieldsV1(),
      ...(subresource === '' ? {} : { subresource }),
    }));
}

function compareManagers(left: Manager, right: Manager): number {
  return (
    compareStrings(left.operation, right.operation) ||
    secondsOf(left) - secondsOf(right) ||
    compareStrings(left.manager, right.manager) ||
    compareStrings(left.apiVersion, right.apiVersion) ||
    compareStrings(left.subresource, right.subresource)
  );
}

/** Time of the last change in seconds since 1970; 0 when unknown. */
function secondsOf({ time }: Manager): number {
  const milliseconds = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(milliseconds) ? 0 : Math.floor(milliseconds / 1000);
}

/** Maximum number of Update managers; beyond it the oldest are merged, as in API servers. */
export const MAX_UPDATE_MANAGERS = 10;

const ANCIENT = 'ancient-changes';

/** Merges the oldest managers of updates, per version, until there are at most {@link MAX_UPDATE_MANAGERS}. */
export function capManagers(managers: Managers): void {
  const updaters = [...managers].filter(([, { operation }]) => operation === 'Update');
  let count = updaters.length;
  if (count <= MAX_UPDATE_MANAGERS) {
    return;
  }
  updaters.sort(([a, left], [b, right]) => secondsOf(left) - secondsOf(right) || compareStrings(a, b));
  const firstOf = new Map<string, string>();
  // The sets to merge, by the ID of the merged manager. One union at the end is fast even for thousands of managers.
  const parts = new Map<string, FieldSet[]>();
  for (const [id, { apiVersion, time, fields }] of updaters) {
    if (count <= MAX_UPDATE_MANAGERS) {
      break;
    }
    const first = firstOf.get(apiVersion);
    if (first === undefined) {
      firstOf.set(apiVersion, id);
      continue;
    }
    const merged = { manager: ANCIENT, operation: 'Update', apiVersion, subresource: '' } as const;
    const mergedId = managerId(merged);
    const before = managers.get(mergedId) ?? managers.get(first);
    if (!managers.has(mergedId)) {
      managers.delete(first);
    }
    managers.delete(id);
    const sets = parts.get(mergedId) ?? [before?.fields ?? new FieldSet()];
    sets.push(fields);
    parts.set(mergedId, sets);
    managers.set(mergedId, { ...merged, time, fields });
    count--;
  }
  for (const [id, sets] of parts) {
    const manager = managers.get(id);
    if (manager !== undefined) {
      managers.set(id, { ...manager, fields: FieldSet.unionOf(sets) });
    }
  }
}
