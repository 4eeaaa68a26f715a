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
  /** The current object; undefined at creation. */
  readonly live: KubernetesObject | undefined;
  /** The new object, with defaults. Its managedFields replace the current ones where API servers accept that. */
  readonly updated: KubernetesObject;
}

/**
 * The updated object with its managers (`metadata.managedFields`). The writer owns the fields that it changes, and other
 * managers lose them. Never throws: as in API servers, an object with malformed managedFields gets none.
 */
export function trackUpdate(update: TrackedUpdate): KubernetesObject {
  const { live, updated } = update;
  const managers = startingManagers(update);
  // As in API servers, an object without managers gets them at the first apply.
  if (managers.size === 0 && live !== undefined) {
    return withManagers(updated as JsonObject, new Map());
  }
  try {
    return withManagers(updated as JsonObject, managersAfter(update, managers));
  } catch {
    return withManagers(updated as JsonObject, new Map());
  }
}

/** The managers before the write. A request for the main resource may contain others. */
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
 * Returns the live object itself when an update changes nothing except the times of managers, so that it is not stored.
 * Otherwise returns the update.
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
