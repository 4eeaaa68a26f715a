// Merging by schema, like sigs.k8s.io/structured-merge-diff. Not exported by resources/index.ts, so that it is loaded
// only where it is used.
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
