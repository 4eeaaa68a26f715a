import { anyKindOf, FieldSet } from '../../resources/structured-merge/index.ts';
import type { FieldPath, MergeType, PathElement } from '../../resources/structured-merge/index.ts';

/**
 * Updates a manager's fields to the current schema. Where the manager owned a part of a value that is now atomic, it owns the
 * whole value. Returns the set itself when nothing changes.
 */
export function reconcileFields(fields: FieldSet, type: MergeType): FieldSet {
  const atomic: FieldPath[] = [];
  findAtomic(fields, type, { path: [], isWhole: false }, atomic);
  if (atomic.length === 0) {
    return fields;
  }
  const whole = FieldSet.of(atomic);
  return fields.without(whole).union(whole);
}

interface Place {
  readonly path: readonly PathElement[];
  /** Whether the set contains the path itself, and nothing below it. */
  readonly isWhole: boolean;
}

function findAtomic(
  fields: FieldSet | undefined,
  type: MergeType,
  { path, isWhole }: Place,
  atomic: FieldPath[],
): void {
  const { map, list } = type;
  const kind = anyKindOf(type);
  if (kind === 'scalar' || (kind === 'map' && map?.isDeduced === true)) {
    return;
  }
  const isAtomic = kind === 'map' ? map?.isAtomic : list?.isAtomic;
  if (!isWhole && isAtomic === true) {
    if (fields !== undefined || kind === 'list') {
      atomic.push(path);
    }
    return;
  }
  for (const { element, isMember, children } of fields?.nodes() ?? []) {
    const below = kind === 'list' ? list?.element() : element.kind === 'field' ? map?.field(element.name) : undefined;
    if (below !== undefined) {
      findAtomic(children, below, { path: [...path, element], isWhole: isMember && children === undefined }, atomic);
    }
  }
}
