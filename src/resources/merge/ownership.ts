// Who owns which fields after a write: the rules that applying and updating share.
import type { JsonObject } from '../json.ts';
import { compareObjects } from './compare.ts';
import type { Comparison } from './compare.ts';
import type { FieldSet } from './field-set.ts';
import type { Manager, Managers } from './managed-fields.ts';
import { mergeTypeOf } from './merge-type.ts';
import type { MergeType } from './merge-type.ts';
import { reconcileFields } from './reconcile-fields.ts';
import type { Schema } from '../schema.ts';

/** What is known about the kind in the version of a request. */
export interface Kind {
  readonly apiVersion: string;
  readonly type: MergeType;
  /** See `resetFieldsOf`. */
  readonly resetFields: FieldSet;
  /** The schema of the kind in another version; undefined when it is not served. */
  readonly schemaOf: (apiVersion: string) => Schema | undefined;
}

/** The type of the kind in a version; undefined when it is not served. */
export function typeIn(kind: Kind, apiVersion: string): MergeType | undefined {
  if (apiVersion === kind.apiVersion) {
    return kind.type;
  }
  const schema = kind.schemaOf(apiVersion);
  return schema === undefined ? undefined : mergeTypeOf(schema);
}

/** The managers, their fields as the schemas of now have them. Those of versions that are gone are left out. */
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

/** What a change means for those who did not make it. */
export interface Effects {
  /** In the version of the request, without the fields that it resets. */
  readonly comparison: Comparison;
  /** The fields of others that the change sets to something else. Empty sets are left out. */
  readonly conflicts: ReadonlyMap<string, { readonly manager: Manager; readonly fields: FieldSet }>;
  /** The others as they are when they lose those fields and all that were removed. Those that have nothing left are gone. */
  readonly others: Managers;
}

/** Compares an object with what it becomes, and takes from all managers but `own` what is not theirs any more. */
export function effectsOf(
  before: JsonObject,
  after: JsonObject,
  kind: Kind,
  managers: Managers,
  own: string | undefined,
): Effects {
  const comparisons = new Map<string, Comparison | undefined>();
  const comparisonIn = (apiVersion: string): Comparison | undefined => {
    if (!comparisons.has(apiVersion)) {
      const type = typeIn(kind, apiVersion);
      comparisons.set(
        apiVersion,
        type === undefined ? undefined : withoutFields(compareObjects(before, after, type), kind.resetFields),
      );
    }
    return comparisons.get(apiVersion);
  };
  const conflicts = new Map<string, { readonly manager: Manager; readonly fields: FieldSet }>();
  const others: Managers = new Map();
  for (const [id, manager] of managers) {
    const comparison = comparisonIn(manager.apiVersion);
    if (id === own || comparison === undefined) {
      continue;
    }
    const lost = manager.fields.intersection(comparison.modified.union(comparison.added));
    if (!lost.isEmpty) {
      conflicts.set(id, { manager, fields: lost });
    }
    const fields = manager.fields.difference(lost).difference(comparison.removed);
    if (!fields.isEmpty) {
      others.set(id, { ...manager, fields });
    }
  }
  const comparison = withoutFields(compareObjects(before, after, kind.type), kind.resetFields);
  return { comparison: comparisonIn(kind.apiVersion) ?? comparison, conflicts, others };
}

function withoutFields({ added, modified, removed }: Comparison, fields: FieldSet): Comparison {
  return { added: added.without(fields), modified: modified.without(fields), removed: removed.without(fields) };
}
