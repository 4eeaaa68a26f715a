export { CodedError } from './coded-error.ts';
export { deepFreeze } from './deep-freeze.ts';
export { errorText } from './error-text.ts';
export { buildJson, jsonNumberAt, parseJson } from './json.ts';
export { setOwn } from './set-own.ts';
export { shortened } from './shortened.ts';
export { asJson, isJsonObject, own, textOf, textsOf } from './json-value.ts';
export type { JsonObject, JsonValue } from './json-value.ts';
export { endOfJsonString, isNestedDeeper } from './json-text.ts';
