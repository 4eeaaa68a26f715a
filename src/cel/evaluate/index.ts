export { sizeOf } from './size.ts';
export { compareValues, isOrdered, NO_SUCH_OVERLOAD } from './order.ts';
export { compilePattern } from './pattern.ts';
export type { Pattern } from './pattern.ts';
export {
  decodeUtf8,
  toBoolValue,
  toBytesValue,
  toDoubleValue,
  toDurationValue,
  toIntValue,
  toText,
  toTimestampValue,
  toUintValue,
} from './conversion.ts';
export { equalValues } from './equality.ts';

export { COMPREHENSION_LIBRARY, OPTIONAL_LIBRARY } from './extension-libraries.ts';
export { parseJson } from './json.ts';
export { findInMap, keyOf, keysOf, MapBuilder, mapSize, setOwn } from './map.ts';
export {
  compareNumbers,
  doubleOf,
  doubleValue,
  isInt,
  isNumeric,
  MAX_INT,
  MAX_UINT,
  MIN_INT,
  toInt,
} from './number.ts';
export { CelOptional } from './optional.ts';
export { printValue } from './print.ts';
export { CelStruct } from './struct.ts';
export type { StructFactory } from './struct.ts';
export { matchCost, PATTERN_FACTOR, TRAVERSAL_FACTOR } from './standard-costs.ts';
export { standardLibrary } from './standard-library.ts';
export { CelDuration, CelTimestamp, formatDuration, formatTimestamp, parseDuration, parseTimestamp } from './time.ts';
export { isList, isMap, isRecord, typeNameOf } from './type-name.ts';
export { CelTypeValue } from './type-value.ts';
export { compileExpression } from './compile.ts';
export type { CompileInput, Meaning } from './compile-input.ts';
export { CompiledExpression, CostCounter } from './compiled-expression.ts';
export type { Bindings, EvaluateOptions, Evaluation } from './compiled-expression.ts';
export { Cancellation, COST_EXCEEDED, Frame, MAX_TEXT_LENGTH, MAX_WORK } from './frame.ts';
export { LazyStruct } from './lazy-struct.ts';
export { nameOfType } from './runtime-type.ts';
