// Merging by schema, as sigs.k8s.io/structured-merge-diff does. Apart from resources/index.ts, so that only who merges loads it.
export { checkTypes } from './check-types.ts';
export { FieldSet } from './field-set.ts';
export { fieldSetOf, fieldsOf } from './fields-of.ts';
export { isSameJson } from './json-order.ts';
export { elementOf } from './list-elements.ts';
export { mergeApplied } from './merge-applied.ts';
export { checkMergeDepth, MergeError } from './merge-error.ts';
export { anyKindOf, kindFor, mergeTypeOf } from './merge-type.ts';
export type { ListType, MapType, MergeType } from './merge-type.ts';
export { mergeValues } from './merge-values.ts';
export { fieldElement, pathText } from './path-element.ts';
export type { FieldPath, PathElement } from './path-element.ts';
