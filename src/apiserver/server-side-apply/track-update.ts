import { timeText } from '../../resources/index.ts';
import type { JsonObject, KubernetesObject } from '../../resources/index.ts';
import { FieldSet, isSameJson } from '../../resources/structured-merge/index.ts';
import { capManagers, isReset, managerId, parseManagers } from './managed-fields.ts';
import type { Managers } from './managed-fields.ts';
import { comparable, kindOf, withManagers } from './merge-request.ts';
import type { ManagedWrite } from './merge-request.ts';
import { effectsOf, reconciled } from './ownership.ts';
import { trackedFields } from './reset-fields.ts';

/** A create, an update, or a patch other than apply. */
export interface TrackedUpdate extends ManagedWrite {
  /** The present object; undefined at creation. */
  readonly live: KubernetesObject | undefined;
  /** The new object, with defaults. Its managedFields count where API servers accept them. */
  readonly updated: KubernetesObject;
}

/**
 * The updated object with its managers (`metadata.managedFields`): the writer owns the fields that it changes, others lose
 * them. Never throws: as in API servers, an object with malformed fields has no managers.
 */
export function trackUpdate(update: TrackedUpdate): KubernetesObject {
  const { live, updated } = update;
  const managers = startingManagers(update);
  // Objects without managers are not tracked.
  if (managers.size === 0 && live !== undefined) {
    return withManagers(updated as JsonObject, new Map());
  }
  try {
    return withManagers(updated as JsonObject, managersAfter(update, managers));
  } catch {
    return withManagers(updated as JsonObject, new Map());
  }
}

/** The managers before the write, which a request for the main resource may set. */
function startingManagers({ definition, live, updated, subresource }: TrackedUpdate): Managers {
  const ofLive = (): Managers => parsedOrNone(live?.metadata.managedFields) ?? new Map();
  if (subresource !== undefined && subresource !== '') {
    return ofLive();
  }
  const { managedFields } = updated.metadata ?? {};
  if (isReset(managedFields, definition.origin)) {
    return new Map();
  }
  const managers = parsedOrNone(managedFields);
  return managers === undefined || managers.size === 0 ? ofLive() : managers;
}

function parsedOrNone(entries: unknown): Managers | undefined {
  try {
    return parseManagers(entries);
  } catch {
    return undefined;
  }
}

function managersAfter(update: TrackedUpdate, before: Managers): Managers {
  const { definition, live, updated } = update;
  return ownersAfter(update, before, comparable(live, definition), comparable(updated, definition));
}

/** The managers after a write from `before` to `after`. */
export function ownersAfter(write: ManagedWrite, managers: Managers, before: JsonObject, after: JsonObject): Managers {
  const { manager, subresource = '', now } = write;
  const kind = kindOf(write);
  const { change, others: result } = effectsOf(before, after, kind, reconciled(managers, kind), undefined);
  const fields = trackedFields(change.set);
  if (!fields.isEmpty) {
    const self = {
      manager: manager === '' ? 'unknown' : manager,
      operation: 'Update',
      apiVersion: kind.apiVersion,
      subresource,
    } as const;
    const id = managerId(self);
    const previous = result.get(id)?.fields ?? new FieldSet();
    result.set(id, { ...self, time: timeText(now), fields: fields.union(previous) });
  }
  capManagers(result);
  return result;
}

/**
 * Called before an update is stored. Returns the live object itself when at most the times of managers differ: then there is
 * nothing to store.
 */
export function keepManagerTimes(live: KubernetesObject, updated: KubernetesObject): KubernetesObject {
  const before = live.metadata.managedFields ?? [];
  const after = updated.metadata.managedFields ?? [];
  const areSameManagers =
    before.length === after.length &&
    after.every((entry, index) => {
      const { time: _after, ...mine } = entry;
      const { time: _before, ...theirs } = before[index] ?? {};
      return isSameJson(mine, theirs);
    });
  const kept = after.length === 0 ? updated : { ...updated, metadata: { ...updated.metadata, managedFields: before } };
  return areSameManagers && isSameJson(kept as JsonObject, live as JsonObject) ? live : updated;
}
