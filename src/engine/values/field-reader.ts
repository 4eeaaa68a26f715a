import { isJsonObject } from './json-text.ts';
import type { JsonObject, JsonValue } from './json-text.ts';
import { shortened, unknownKeyHint } from '../../values/index.ts';

/** Keys, and indexes of lists. */
export type KeyPath = readonly (string | number)[];

/** A mistake in a field. */
export interface FieldFault {
  readonly code: 'unknown-key' | 'wrong-type' | 'invalid-value' | 'missing-key';
  readonly path: KeyPath;
  /** The key of the field, unless the message names it. */
  readonly key?: string;
  readonly message: string;
}

export interface KnownKeysOptions {
  /** Name of the mapping in messages: `a policy`. */
  readonly owner?: string;
  /** Hints for certain unknown keys, instead of "did you mean". */
  readonly hints?: ReadonlyMap<string, string>;
}

/** Reads the fields of an untyped mapping and reports mistakes. Null counts as absent. */
export class FieldReader {
  readonly path: KeyPath;
  readonly report: (fault: FieldFault) => void;
  readonly #object: JsonObject;

  /** A value that is not a mapping is reported once, and all its fields are absent. */
  constructor(value: unknown, report: (fault: FieldFault) => void, path: KeyPath = []) {
    const isMapping = isJsonObject(value);
    this.path = path;
    this.report = isMapping ? report : () => {};
    this.#object = isMapping ? value : {};
    if (!isMapping) {
      report({ code: 'wrong-type', message: `expected a mapping, got ${describeValue(value)}`, path });
    }
  }

  get keys(): readonly string[] {
    return Object.keys(this.#object);
  }

  /** Whether the key is present, null included. */
  isWritten(key: string): boolean {
    return Object.hasOwn(this.#object, key);
  }

  /** The value including null; undefined when the key is absent. */
  written(key: string): JsonValue | undefined {
    return this.isWritten(key) ? this.#object[key] : undefined;
  }

  has(key: string): boolean {
    return this.value(key) !== undefined;
  }

  value(key: string): JsonValue | undefined {
    return this.written(key) ?? undefined;
  }

  /** The path of a field in the format of API servers: `spec.validations[0].expression`. */
  at(key: string): string {
    return fieldPathText([...this.path, key]);
  }

  fault(key: string, message: string, ...below: KeyPath): void {
    this.report({ code: 'invalid-value', key, message, path: [...this.path, key, ...below] });
  }

  faultHere(message: string): void {
    this.report({ code: 'invalid-value', message, path: this.path });
  }

  missing(key: string): void {
    this.report({ code: 'missing-key', message: `expected the key "${key}", which is missing`, path: this.path });
  }

  knownKeys(known: readonly string[], { owner, hints }: KnownKeysOptions = {}): void {
    const where = owner === undefined ? '' : ` in ${owner}`;
    for (const key of this.keys.filter((one) => !known.includes(one))) {
      const message = `unknown key ${describeValue(key)}${where}: ${hints?.get(key) ?? unknownKeyHint(key, known)}`;
      this.report({ code: 'unknown-key', message, path: [...this.path, key] });
    }
  }

  text(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'string') {
      return value;
    }
    this.#unexpected(key, 'text', value);
    return undefined;
  }

  /** A non-empty text. */
  someText(key: string): string | undefined {
    const text = this.text(key);
    if (text === '') {
      this.fault(key, 'expected some text, got ""');
      return undefined;
    }
    return text;
  }

  requiredText(key: string): string {
    if (!this.has(key)) {
      this.missing(key);
    }
    return this.someText(key) ?? '';
  }

  boolean(key: string): boolean | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'boolean') {
      return value;
    }
    this.#unexpected(key, 'true or false', value);
    return undefined;
  }

  integer(key: string): number | undefined {
    const value = this.value(key);
    if (value === undefined || (typeof value === 'number' && Number.isSafeInteger(value))) {
      return value;
    }
    this.#unexpected(key, 'a whole number', value);
    return undefined;
  }

  oneOf<Choice extends string>(key: string, choices: readonly Choice[]): Choice | undefined {
    const text = this.text(key);
    const choice = choices.find((candidate) => candidate === text);
    if (choice === undefined && text !== undefined) {
      this.fault(key, `expected ${choices.join(' or ')}, got ${describeValue(text)}`);
    }
    return choice;
  }

  list(key: string): readonly JsonValue[] | undefined {
    const value = this.value(key);
    if (value === undefined || Array.isArray(value)) {
      return value;
    }
    this.#unexpected(key, 'a list', value);
    return undefined;
  }

  /** The texts of a list; none when it is absent. */
  texts(key: string): readonly string[] {
    return (this.list(key) ?? []).filter((element, index) => {
      const isText = typeof element === 'string';
      if (!isText) {
        this.#unexpected(key, 'text', element, index);
      }
      return isText;
    });
  }

  mapping(key: string): JsonObject | undefined {
    const value = this.value(key);
    if (value === undefined || isJsonObject(value)) {
      return value;
    }
    this.#unexpected(key, 'a mapping', value);
    return undefined;
  }

  /** The mapping at a key. */
  inside(key: string): FieldReader | undefined {
    const value = this.mapping(key);
    return value === undefined ? undefined : new FieldReader(value, this.report, [...this.path, key]);
  }

  /** The mappings of a list; none when it is absent. @param most how many of the first are read. Default: all */
  each(key: string, most = Number.POSITIVE_INFINITY): readonly FieldReader[] {
    const elements = (this.list(key) ?? []).slice(0, most);
    return elements.map((element, index) => new FieldReader(element, this.report, [...this.path, key, index]));
  }

  #unexpected(key: string, expected: string, value: JsonValue, ...below: KeyPath): void {
    const hint = expected === 'text' && typeof value !== 'object' ? ': put it in quotes' : '';
    const message = `expected ${expected}, got ${describeValue(value)}${hint}`;
    this.report({ code: 'wrong-type', key, message, path: [...this.path, key, ...below] });
  }
}

/** The message with its key. */
export function faultText({ key, message }: Pick<FieldFault, 'key' | 'message'>): string {
  return key === undefined ? message : `${key}: ${message}`;
}

/** A path in the format of API servers: `spec.validations[0].expression`. */
export function fieldPathText(path: KeyPath): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') {
      return `${text}[${step}]`;
    }
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** Most characters of a value in a message. */
const MAX_SHOWN = 80;

/** A short form of a value, for messages. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) {
    return 'nothing';
  }
  if (typeof value === 'object') {
    return Array.isArray(value) ? 'a list' : 'a mapping';
  }
  return shortened(
    typeof value === 'number' || typeof value === 'bigint' ? String(value) : JSON.stringify(value),
    MAX_SHOWN,
  );
}
