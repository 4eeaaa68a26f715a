import { isJsonObject } from '../json-text.ts';
import { unknownKeyHint } from '../nearest-key.ts';
import { kindOf } from './field-problem.ts';
import type { FieldProblems } from './field-problem.ts';

/** How keys of a mapping are compared. */
export interface KeyOptions {
  /** Whether `APIVersion` equals `apiVersion`, as in Go's JSON decoder. Default: false. */
  readonly ignoreCase?: boolean;
  /** Messages for certain unknown keys instead of "did you mean". */
  readonly hints?: Readonly<Record<string, string>>;
}

/** Reads one mapping strictly: unknown keys and values of a wrong type are mistakes. Null counts as missing. */
export class Fields {
  readonly path: string;
  readonly #values = new Map<string, unknown>();
  readonly #problems: FieldProblems;

  constructor(
    value: unknown,
    path: string,
    known: readonly string[],
    problems: FieldProblems,
    options: KeyOptions = {},
  ) {
    this.path = path;
    this.#problems = problems;
    if (!isJsonObject(value)) {
      problems.add(path, `expected a mapping, got ${kindOf(value)}`);
      return;
    }
    for (const key of Object.keys(value)) {
      const name = options.ignoreCase === true ? (known.find((one) => equalIgnoringCase(one, key)) ?? key) : key;
      if (known.includes(name)) {
        this.#values.set(name, value[key] ?? undefined);
      } else {
        problems.add(this.at(key), `unknown key ${JSON.stringify(key)}: ${this.#hint(key, known, options)}`);
      }
    }
  }

  /** The path of a field of this mapping. */
  at(key: string): string {
    return this.path === '' ? key : `${this.path}.${key}`;
  }

  value(key: string): unknown {
    return this.#values.get(key);
  }

  has(key: string): boolean {
    return this.value(key) !== undefined;
  }

  /** Undefined when it is missing or not a string. */
  text(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'string') {
      return value;
    }
    this.#problems.add(this.at(key), `expected text, got ${kindOf(value)}`);
    return undefined;
  }

  /** The elements with their paths; empty when it is missing or not a list. */
  list(key: string): readonly (readonly [value: unknown, path: string])[] {
    const value = this.value(key);
    if (Array.isArray(value)) {
      return value.map((element, index) => [element, `${this.at(key)}[${index}]`] as const);
    }
    if (value !== undefined) {
      this.#problems.add(this.at(key), `expected a list, got ${kindOf(value)}`);
    }
    return [];
  }

  texts(key: string): string[] {
    return this.list(key).flatMap(([value, path]) => {
      if (typeof value === 'string') {
        return [value];
      }
      this.#problems.add(path, `expected text, got ${kindOf(value)}`);
      return [];
    });
  }

  /** One of the supported texts; `fallback` when it is missing or empty. */
  oneOf<Value extends string>(key: string, supported: readonly Value[], fallback: Value): Value {
    const text = this.text(key);
    if (text === undefined || text === '') {
      return fallback;
    }
    const found = supported.find((one) => one === text);
    if (found === undefined) {
      this.#problems.unsupported(this.at(key), text, supported);
    }
    return found ?? fallback;
  }

  #hint(key: string, known: readonly string[], { hints }: KeyOptions): string {
    const hint = hints !== undefined && Object.hasOwn(hints, key) ? hints[key] : undefined;
    return hint ?? unknownKeyHint(key, known);
  }
}

function equalIgnoringCase(a: string, b: string): boolean {
  return a.length === b.length && a.toLowerCase() === b.toLowerCase();
}
