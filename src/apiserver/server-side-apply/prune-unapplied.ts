import type { JsonObject } from '../../resources/index.ts';
import { FieldSet, fieldsOf } from '../../resources/structured-merge/index.ts';
import type { MergeType } from '../../resources/structured-merge/index.ts';
import type { Manager, Managers } from './managed-fields.ts';
import { typeIn } from './ownership.ts';
import type { Kind } from './ownership.ts';
import { removeFields, withNamedFields } from './remove-fields.ts';

/**
 * Removes fields that the manager applied `before` and does not apply any more, unless another manager owns them. Fields that
 * the manager did not own are kept, even below removed ones. `managers` includes the apply.
 */
export function pruneUnapplied(merged: JsonObject, before: Manager, managers: Managers, kind: Kind): JsonObject {
  const type = typeIn(kind, before.apiVersion);
  if (type === undefined || before.fields.isEmpty) {
    return merged;
  }
  const last = withNamedFields(before.fields, type);
  let pruned = removeFields(merged, last, type);
  for (const [apiVersion, owned] of ownedByVersion(managers, before.apiVersion)) {
    pruned = withOwned(merged, pruned, owned, typeIn(kind, apiVersion));
  }
  const left = withNamedFields(fieldsOf(pruned, type), type);
  const all = withNamedFields(fieldsOf(merged, type), type);
  return removeFields(merged, all.difference(left).intersection(last), type);
}

/** The fields of all managers by version, in the order of processing: `first` before the others. */
function ownedByVersion(managers: Managers, first: string): ReadonlyMap<string, FieldSet> {
  const owned = new Map<string, FieldSet[]>([[first, []]]);
  for (const { apiVersion, fields } of managers.values()) {
    const sets = owned.get(apiVersion);
    if (sets === undefined) {
      owned.set(apiVersion, [fields]);
    } else {
      sets.push(fields);
    }
  }
  return new Map([...owned].map(([apiVersion, sets]) => [apiVersion, FieldSet.unionOf(sets)]));
}

/** Restores pruned fields that are owned. */
function withOwned(merged: JsonObject, pruned: JsonObject, owned: FieldSet, type: MergeType | undefined): JsonObject {
  if (type === undefined) {
    return pruned;
  }
  const kept = withNamedFields(fieldsOf(pruned, type), type).union(withNamedFields(owned, type));
  return removeFields(merged, withNamedFields(fieldsOf(merged, type), type).difference(kept), type);
}
