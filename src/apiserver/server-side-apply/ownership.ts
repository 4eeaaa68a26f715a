// The effect of a write on field ownership, which is the same for apply and update.
import type { JsonObject, Schema } from '../../resources/index.ts';
import { mergeTypeOf } from '../../resources/structured-merge/index.ts';
import type { FieldSet, MergeType } from '../../resources/structured-merge/index.ts';
import { compareObjects } from './compare.ts';
import type { Manager, Managers } from './managed-fields.ts';
import { reconcileFields } from './reconcile-fields.ts';

/** A kind in the version of a request. */
export interface Kind {
  readonly apiVersion: string;
  readonly type: MergeType;
  /** See `resetFieldsOf`. */
  readonly resetFields: FieldSet;
  /** The schema of the kind in another version; undefined when it is not served. */
  readonly schemaOf: (apiVersion: string) => Schema | undefined;
}

/** The type of a kind in a version. Undefined when the version is not served. */
export function typeIn(kind: Kind, apiVersion: string): MergeType | undefined {
  if (apiVersion === kind.apiVersion) {
    return kind.type;
  }
  const schema = kind.schemaOf(apiVersion);
  return schema === undefined ? undefined : mergeTypeOf(schema);
}

/** Updates the fields of managers to the current schemas. Drops managers of versions that are not served any more. */
export function reconciled(managers: Managers, kind: Kind): Managers {
  const result: Managers = new Map();
  for (const [id, manager] of managers) {
    const type = typeIn(kind, manager.apiVersion);
    if (type !== undefined) {
      const fields = reconcileFields(manager.fields, type);
      result.set(id, fields === manager.fields ? manager : { ...manager, fields });
    }
  }
  return result;
}

/** The fields that a write changes, without reset fields. */
interface Change {
  /** Added and modified fields. */
  readonly set: FieldSet;
  readonly removed: FieldSet;
}

/** The fields of another manager that a write changes. */
export interface Conflict {
  readonly manager: Manager;
  readonly fields: FieldSet;
}

/** The effects of a write on all managers. */
export interface Effects {
  /** In the version of the request. */
  readonly change: Change;
  /** By {@link managerId}. */
  readonly conflicts: ReadonlyMap<string, Conflict>;
  /** The other managers, without changed and removed fields. Managers that have no fields left are dropped. */
  readonly others: Managers;
}

/** Compares two states of an object, and removes the changed fields from all managers except `ownId`. */
export function effectsOf(
  before: JsonObject,
  after: JsonObject,
  kind: Kind,
  managers: Managers,
  ownId: string | undefined,
): Effects {
  const own = compared(before, after, kind, kind.type);
  const changes = new Map([[kind.apiVersion, own]]);
  const conflicts = new Map<string, Conflict>();
  const others: Managers = new Map();
  for (const [id, manager] of managers) {
    const change = changes.get(manager.apiVersion) ?? changeIn(manager.apiVersion);
    if (id === ownId || change === undefined) {
      continue;
    }
    const lost = manager.fields.intersection(change.set);
    if (!lost.isEmpty) {
      conflicts.set(id, { manager, fields: lost });
    }
    const fields = manager.fields.difference(lost).difference(change.removed);
    if (!fields.isEmpty) {
      others.set(id, { ...manager, fields });
    }
  }
  return { change: own, conflicts, others };

  function changeIn(apiVersion: string): Change | undefined {
    const type = typeIn(kind, apiVersion);
    if (type === undefined) {
      return undefined;
    }
    const change = compared(before, after, kind, type);
    changes.set(apiVersion, change);
    return change;
  }
}

function compared(before: JsonObject, after: JsonObject, { resetFields }: Kind, type: MergeType): Change {
  const { added, modified, removed } = compareObjects(before, after, type);
  return { set: added.union(modified).without(resetFields), removed: removed.without(resetFields) };
}
