// Compares a status with the part of it that a user expects, in the words of Open Cluster Management's `dryrun`.
import { compareStrings, valueText } from '../../../go/index.ts';
import { isJsonObject, type JsonObject, type JsonValue, own } from '../../../resources/index.ts';

/** How deep an expected status may be: statuses have less than ten levels. */
const MAX_DEPTH = 100;

interface ComparedLine {
  readonly text: string;
  readonly outcome: 'matches' | 'differs' | 'skipped';
}

export interface StatusComparison {
  readonly isMatch: boolean;
  readonly lines: readonly ComparedLine[];
}

/** Whether the status has all that is expected. An element of an expected list may match any element. */
export function compareStatus(expected: JsonObject, actual: JsonObject): StatusComparison {
  const lines: ComparedLine[] = [];
  const isMatch = new StatusMatch(lines).object('', expected, actual, 0);
  return { isMatch, lines };
}

/** What is inside of elements of lists is not reported. */
const INSIDE_ELEMENT = /\.\w+\[\d+\]\.\w/;

class StatusMatch {
  readonly #lines: ComparedLine[];

  constructor(lines: ComparedLine[]) {
    this.#lines = lines;
  }

  object(path: string, expected: JsonObject, actual: JsonObject, depth: number): boolean {
    return Object.keys(expected)
      .toSorted(compareStrings)
      .map((key) => {
        const value = own(actual, key);
        if (value === undefined) {
          return this.#report(path, 'differs', `Key '${key}' not found in result at path '${path}'`);
        }
        return this.#value(`${path}.${key}`, key, own(expected, key) ?? null, value, depth);
      })
      .every(Boolean);
  }

  #value(path: string, key: string, expected: JsonValue, actual: JsonValue, depth: number): boolean {
    if (depth > MAX_DEPTH) {
      return this.#report('', 'differs', `${path} is too deep`);
    }
    if (Array.isArray(expected)) {
      return Array.isArray(actual)
        ? this.#list(path, expected, actual, depth)
        : this.#report('', 'skipped', `skip ${key}, ${path} is not array,`);
    }
    if (!isJsonObject(expected)) {
      return this.#scalar(path, expected, actual);
    }
    const type = goType(actual);
    return isJsonObject(actual)
      ? this.object(path, expected, actual, depth + 1)
      : this.#report('', 'differs', `The input status field '${path}' is not the right type - expected '${type}'`);
  }

  #list(path: string, expected: readonly JsonValue[], actual: readonly JsonValue[], depth: number): boolean {
    if (!expected.some(isJsonObject)) {
      return this.#scalar(path, [...expected], [...actual]);
    }
    for (const [index, item] of expected.entries()) {
      const element = `${path}[${index}]`;
      if (!actual.some((one) => this.#element(element, item, one, depth))) {
        this.#report(element, 'differs', `${element} does not match any elements`);
        return this.#report(path, 'differs', `${path} does not match the elements`);
      }
      this.#report(element, 'matches', `${element} matches`);
    }
    return this.#report(path, 'matches', `${path} matches`);
  }

  #element(path: string, expected: JsonValue, actual: JsonValue, depth: number): boolean {
    return isJsonObject(expected) && isJsonObject(actual) && this.object(path, expected, actual, depth + 1);
  }

  #scalar(path: string, expected: JsonValue, actual: JsonValue): boolean {
    const [wanted, found] = [expected, actual].map((value) => valueText(value));
    return wanted === found
      ? this.#report(path, 'matches', `${path}: '${wanted ?? ''}' does match '${found ?? ''}'`)
      : this.#report(path, 'differs', `${path}: '${wanted ?? ''}' does not match '${found ?? ''}'`);
  }

  /** @returns whether the outcome is a match */
  #report(path: string, outcome: ComparedLine['outcome'], text: string): boolean {
    if (!INSIDE_ELEMENT.test(path)) {
      this.#lines.push({ text, outcome });
    }
    return outcome === 'matches';
  }
}

/** The type as Go's reflection names it. */
function goType(value: JsonValue): string {
  if (Array.isArray(value)) {
    return '[]interface {}';
  }
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    default:
      return value === null ? '<nil>' : 'map[string]interface {}';
  }
}
