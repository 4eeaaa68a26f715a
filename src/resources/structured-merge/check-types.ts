import { valueText } from '../../go/index.ts';
import { isJsonObject } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { elementOrProblem } from './list-elements.ts';
import { checkMergeDepth, MergeError } from './merge-error.ts';
import { anyKindOf, kindFor } from './merge-type.ts';
import type { ListType, MapType, MergeType, ScalarType } from './merge-type.ts';
import { elementText, fieldElement } from './path-element.ts';

/**
 * Checks that an object has the types of its schema, as far as merging needs them. With `areDuplicatesAllowed`,
 * elements of sets and maps may be repeated, as in stored objects. Throws MergeError `type-mismatch` with all paths.
 */
export function checkTypes(object: JsonObject, type: MergeType, areDuplicatesAllowed: boolean): void {
  const checker = new Checker(areDuplicatesAllowed);
  checker.check(object, type, '', 0);
  const [first, ...others] = checker.problems;
  if (first !== undefined) {
    const text = others.length === 0 ? first : ['errors:', ...checker.problems.map((one) => `  ${one}`)].join('\n');
    throw new MergeError('type-mismatch', text);
  }
}

class Checker {
  readonly problems: string[] = [];
  readonly #areDuplicatesAllowed: boolean;

  constructor(areDuplicatesAllowed: boolean) {
    this.#areDuplicatesAllowed = areDuplicatesAllowed;
  }

  check(value: JsonValue, type: MergeType, path: string, depth: number): void {
    checkMergeDepth(depth);
    const { map, list, scalar } = type;
    const kind = kindFor(type, value) ?? anyKindOf(type);
    if (value === null) {
      return;
    }
    if (kind === 'map' && map !== undefined) {
      if (isJsonObject(value)) {
        this.#checkMap(value, map, path, depth);
      } else {
        this.#refuse(path, `expected map, got ${holderText(value)}`);
      }
    } else if (kind === 'list' && list !== undefined) {
      if (Array.isArray(value)) {
        this.#checkList(value, list, path, depth);
      } else {
        this.#refuse(path, `expected list, got ${holderText(value)}`);
      }
    } else if (scalar !== undefined) {
      const problem = scalarProblem(scalar, value);
      if (problem !== undefined) {
        this.#refuse(path, problem);
      }
    }
  }

  #checkMap(object: JsonObject, map: MapType, path: string, depth: number): void {
    for (const [name, value] of Object.entries(object)) {
      const at = `${path}${elementText(fieldElement(name))}`;
      const type = map.field(name);
      if (type === undefined) {
        this.#refuse(at, 'field not declared in schema');
        return;
      }
      this.check(value, type, at, depth + 1);
    }
  }

  #checkList(values: readonly JsonValue[], list: ListType, path: string, depth: number): void {
    const seen = new Set<string>();
    for (const [index, value] of values.entries()) {
      let at = `${path}[${index}]`;
      if (!list.isAtomic) {
        const element = elementOrProblem(list, value);
        if (typeof element === 'string') {
          this.#refuse(path, `element ${index}: ${element}`);
          return;
        }
        at = `${path}${elementText(element)}`;
        if (seen.has(element.text) && !this.#areDuplicatesAllowed) {
          this.#refuse(path, `duplicate entries for key ${elementText(element)}`);
        }
        seen.add(element.text);
      }
      this.check(value, list.element(), at, depth + 1);
    }
  }

  #refuse(path: string, problem: string): void {
    this.problems.push(path === '' ? problem : `${path}: ${problem}`);
  }
}

function scalarProblem(scalar: ScalarType, value: JsonValue): string | undefined {
  switch (scalar) {
    case 'numeric':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${goTypeOf(value)}`;
    case 'string':
      return typeof value === 'string' ? undefined : `expected string, got ${goStructText(value)}`;
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got ${holderText(value)}`;
    default:
      return typeof value === 'object' ? `expected any scalar, got ${holderText(value)}` : undefined;
  }
}

/** A value in the format of API servers: Go's `%v` of its holder. */
function holderText(value: JsonValue): string {
  return `&{${valueText(value)}}`;
}

/** The same as `%#v`. */
function goStructText(value: JsonValue): string {
  return `&value.valueUnstructured{Value:${goSyntax(value)}}`;
}

function goSyntax(value: JsonValue): string {
  if (Array.isArray(value)) {
    return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  }
  if (isJsonObject(value)) {
    const entries = Object.keys(value).toSorted();
    const texts = entries.map((key) => `${JSON.stringify(key)}:${goSyntax(value[key] ?? null)}`);
    return `map[string]interface {}{${texts.join(', ')}}`;
  }
  return value === null ? 'interface {}(nil)' : typeof value === 'string' ? JSON.stringify(value) : valueText(value);
}

function goTypeOf(value: JsonValue): string {
  return typeof value === 'boolean'
    ? 'bool'
    : typeof value === 'string'
      ? 'string'
      : Array.isArray(value)
        ? '[]interface {}'
        : 'map[string]interface {}';
}
