// Reads mappings of a test file, and collects faults with their paths.
import { isJsonObject, type JsonObject, type JsonValue, unknownKeyHint } from '../../engine/index.ts';

/** An error in a test file, and the path of the value. */
export interface Fault {
  readonly message: string;
  readonly path: readonly string[];
}

/** Most values after aliases are expanded: enough for megabytes of YAML, and a bound for a "billion laughs" file. */
const MAX_VALUES = 1_000_000;

/**
 * A copy as plain JSON without shared or cyclic values; `__proto__` is an ordinary key. Values that JSON does not have
 * become faults.
 */
export function plainJson(value: unknown, faults: Fault[]): JsonValue {
  let left = MAX_VALUES;
  const path: string[] = [];
  const copy = (member: unknown, key: string): JsonValue => {
    path.push(key);
    const result = walk(member);
    path.pop();
    return result;
  };
  const walk = (at: unknown): JsonValue => {
    left -= 1;
    if (left === 0) {
      faults.push({ message: `expected at most ${MAX_VALUES} values after aliases are expanded, got more`, path: [] });
    }
    if (left <= 0) {
      return null;
    }
    if (typeof at === 'number' && !Number.isFinite(at)) {
      faults.push({ message: `expected a finite number, got ${at}`, path: [...path] });
      return null;
    }
    if (Array.isArray(at)) {
      return at.map((element, index) => copy(element, String(index)));
    }
    if (typeof at === 'object' && at !== null) {
      const object: JsonObject = {};
      for (const [key, member] of Object.entries(at)) {
        const entry = { value: copy(member, key), enumerable: true, configurable: true, writable: true };
        Object.defineProperty(object, key, entry);
      }
      return object;
    }
    return at === undefined ? null : (at as JsonValue);
  };
  return walk(value);
}

/** One mapping. A key with the value null counts as absent, except where any value is allowed. */
export class Fields {
  readonly path: readonly string[];
  readonly #object: JsonObject;
  readonly #faults: Fault[];

  constructor(object: JsonObject, path: readonly string[], faults: Fault[]) {
    this.#object = object;
    this.path = path;
    this.#faults = faults;
  }

  get keys(): readonly string[] {
    return Object.keys(this.#object);
  }

  /** Whether the key is present, with any value. */
  has(key: string): boolean {
    return Object.hasOwn(this.#object, key);
  }

  /** The value as written; undefined when the key is absent. */
  any(key: string): JsonValue | undefined {
    return this.has(key) ? (this.#object[key] ?? null) : undefined;
  }

  value(key: string): JsonValue | undefined {
    return this.any(key) ?? undefined;
  }

  fault(key: string, message: string, ...below: string[]): void {
    this.#faults.push({ message: `${key}: ${message}`, path: [...this.path, key, ...below] });
  }

  faultHere(message: string): void {
    this.#faults.push({ message, path: this.path });
  }

  knownKeys(known: readonly string[], owner: string): void {
    for (const key of this.keys) {
      if (!known.includes(key)) {
        const message = `unknown key ${JSON.stringify(key)} in ${owner}: ${unknownKeyHint(key, known)}`;
        this.#faults.push({ message, path: [...this.path, key] });
      }
    }
  }

  text(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || (typeof value === 'string' && value !== '')) {
      return value;
    }
    const hint = typeof value === 'object' || value === '' ? '' : ': put it in quotes';
    this.fault(key, `expected a non-empty string, got ${describe(value)}${hint}`);
    return undefined;
  }

  requiredText(key: string): string {
    if (this.value(key) === undefined) {
      this.faultHere(`expected the key "${key}", which is missing`);
    }
    return this.text(key) ?? '';
  }

  boolean(key: string): boolean | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'boolean') {
      return value;
    }
    this.fault(key, `expected true or false, got ${describe(value)}`);
    return undefined;
  }

  integer(key: string): number | undefined {
    const value = this.value(key);
    if (value === undefined || (typeof value === 'number' && Number.isSafeInteger(value))) {
      return value;
    }
    this.fault(key, `expected a whole number, got ${describe(value)}`);
    return undefined;
  }

  oneOf<Choice extends string>(key: string, choices: readonly Choice[]): Choice | undefined {
    const value = this.value(key);
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined && value !== undefined) {
      this.fault(key, `expected ${choices.join(' or ')}, got ${describe(value)}`);
    }
    return choice;
  }

  list(key: string): readonly JsonValue[] | undefined {
    const value = this.value(key);
    if (value === undefined || Array.isArray(value)) {
      return value;
    }
    this.fault(key, `expected a list, got ${describe(value)}`);
    return undefined;
  }

  object(key: string): JsonObject | undefined {
    const value = this.value(key);
    if (value === undefined || isJsonObject(value)) {
      return value;
    }
    this.fault(key, `expected a mapping, got ${describe(value)}`);
    return undefined;
  }

  /** The mapping at a key. */
  inside(key: string): Fields | undefined {
    const value = this.object(key);
    return value === undefined ? undefined : new Fields(value, [...this.path, key], this.#faults);
  }

  /** The mappings in the list at a key. */
  each(key: string): readonly Fields[] {
    return (this.list(key) ?? []).flatMap((element, index) => {
      if (isJsonObject(element)) {
        return [new Fields(element, [...this.path, key, String(index)], this.#faults)];
      }
      this.fault(key, `expected a mapping, got ${describe(element)}`, String(index));
      return [];
    });
  }
}

/** A short form of a value, for messages. */
export function describe(value: JsonValue): string {
  if (value === null) {
    return 'nothing';
  }
  if (typeof value === 'object') {
    return Array.isArray(value) ? 'a list' : 'a mapping';
  }
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
