export { isBase64 } from './base64.ts';
export { CodedError } from './coded-error.ts';
export { deepFreeze } from './deep-freeze.ts';
export { errorText } from './error-text.ts';
export { buildJson, exactJson, jsonNumberAt, parseExactJson, parseJson } from './json.ts';
export { type JsonPath, parseJsonPath } from './json-path.ts';
export { KeptEntries } from './kept-entries.ts';
export { listed } from './listed.ts';
export { setOwn } from './set-own.ts';
export { shortened, shortenedInside } from './shortened.ts';
export { asJson, isJsonObject, own, objectIn, textOf, textsOf, valueAt } from './json-value.ts';
export type { JsonObject, JsonValue } from './json-value.ts';
export { endOfJsonString, isNestedDeeper } from './json-text.ts';
export { nearestKey, unknownKeyHint } from './nearest-key.ts';
export {
  escapedControls,
  inertText,
  inertTexts,
  ownSequence,
  styled,
  terminalOutput,
  withoutControls,
} from './terminal-text.ts';
export { hasPart, indexOfPart, lastIndexOfPart, positionsOf, splitAtParts } from './text-search.ts';
export { textPosition } from './text-position.ts';
export type { TextPosition } from './text-position.ts';
