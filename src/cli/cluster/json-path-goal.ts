// `--for=jsonpath=PATH[=VALUE]`, as kubectl reads it.
import { type JsonPath, parseJsonPath } from '../../values/index.ts';
import { CliError, usageError } from '../errors.ts';
import type { WaitGoal } from './wait-for.ts';

/** A path in braces, or without an equal sign outside of brackets, and what is after it. */
const PATH_AND_VALUE = /^(\{.*?\}(?==|$)|(?:[^=[]|\[[^\]]*\])+)(?:=(.*))?$/su;

/**
 * Waits for a value, or without one until there is any. Blanks and quotes around values do not count.
 * @throws CliError
 */
export function jsonPathGoal(text: string): WaitGoal {
  const [, pathText = '', value] = PATH_AND_VALUE.exec(text) ?? [];
  const path = parseJsonPath(pathText.replace(/^\{(.*)\}$/su, '$1'));
  const expected = value?.replaceAll(/^['"]+|['"]+$/g, '').trim();
  if (pathText === '' || path === undefined || expected === '') {
    throw usageError(
      `--for jsonpath=${text}: expected a path, such as {.status.phase} or {.status.audit.findings[0].message}, with =VALUE or without`,
    );
  }
  return (object) => {
    const found = object === undefined ? undefined : valueAtPath(path, object, text);
    return found !== undefined && (expected === undefined || found.trim() === expected);
  };
}

/** @throws CliError */
function valueAtPath(path: JsonPath, object: object, text: string): string | undefined {
  const [value, ...others] = path.find(object);
  if (others.length > 0 || (typeof value === 'object' && value !== null)) {
    const what = others.length > 0 ? `${others.length + 1} values` : 'an object or a list';
    throw new CliError(`--for jsonpath=${text}: expected a path to one text, number or boolean, got ${what}`);
  }
  return typeof value === 'string' ? value : value === undefined ? undefined : JSON.stringify(value);
}
