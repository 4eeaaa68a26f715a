export type { BuiltinContext, OpaBuiltin, OpaBuiltins } from './builtin.ts';
export { opaBuiltins } from './builtin-table.ts';
export { BuiltinError } from './errors.ts';
export { RegoObject, RegoSet, valuesEqual } from './value.ts';
export type { RegoValue } from './value.ts';
export { parseRegoText, regoText } from './value-text.ts';
