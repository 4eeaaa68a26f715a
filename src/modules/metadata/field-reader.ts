import { ModuleError } from '../reference/errors.ts';

/** A value in a module's metadata, with its path for error messages. Null counts as absent. */
export class MetadataReader {
  readonly #value: unknown;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    this.#value = value ?? undefined;
    this.#path = path;
  }

  get isAbsent(): boolean {
    return this.#value === undefined;
  }

  /** The field of a mapping. @throws ModuleError `metadata-invalid` when this is not a mapping */
  field(name: string): MetadataReader {
    const mapping = this.#mapping();
    return new MetadataReader(Object.hasOwn(mapping, name) ? mapping[name] : undefined, join(this.#path, name));
  }

  /** The value as read by `read`; undefined when it is absent. */
  optional<T>(read: (field: MetadataReader) => T): T | undefined {
    return this.isAbsent ? undefined : read(this);
  }

  string(): string {
    if (typeof this.#value !== 'string') {
      throw this.#expected('a string');
    }
    return this.#value;
  }

  nonEmptyString(): string {
    const text = this.string();
    if (text === '') {
      throw this.#expected('a non-empty string');
    }
    return text;
  }

  boolean(): boolean {
    if (typeof this.#value !== 'boolean') {
      throw this.#expected('true or false');
    }
    return this.#value;
  }

  oneOf<T extends string>(values: readonly T[]): T {
    const found = values.find((value) => value === this.#value);
    if (found === undefined) {
      throw this.#expected(`one of ${values.join(', ')}`);
    }
    return found;
  }

  /** A list; empty when absent. */
  list<T>(read: (item: MetadataReader) => T): readonly T[] {
    if (this.isAbsent) {
      return [];
    }
    if (!Array.isArray(this.#value)) {
      throw this.#expected('a list');
    }
    return this.#value.map((item, index) => read(new MetadataReader(item, `${this.#path}[${index}]`)));
  }

  nonEmptyList<T>(read: (item: MetadataReader) => T): readonly T[] {
    const items = this.list(read);
    if (items.length === 0) {
      throw this.#expected('a list with at least one entry');
    }
    return items;
  }

  nonEmptyStrings({ allowEmpty = true }: { allowEmpty?: boolean } = {}): readonly string[] {
    return this.nonEmptyList((item) => (allowEmpty ? item.string() : item.nonEmptyString()));
  }

  /** A mapping of strings; empty when absent. */
  stringMap(): Readonly<Record<string, string>> {
    const entries = this.isAbsent ? [] : Object.keys(this.#mapping());
    return Object.fromEntries(entries.map((key) => [key, this.field(key).string()]));
  }

  /** An error about this value. */
  error(message: string): ModuleError {
    return new ModuleError(
      'metadata-invalid',
      `the module's metadata is invalid at ${this.#path || 'the top'}: ${message}`,
    );
  }

  #mapping(): Readonly<Record<string, unknown>> {
    if (typeof this.#value !== 'object' || this.#value === null || Array.isArray(this.#value)) {
      throw this.#expected('a mapping');
    }
    return this.#value as Readonly<Record<string, unknown>>;
  }

  #expected(what: string): ModuleError {
    return this.error(`expected ${what}, got ${show(this.#value)}`);
  }
}

function join(path: string, name: string): string {
  const isPlain = /^[\w-]+$/.test(name);
  const step = isPlain ? name : `[${JSON.stringify(name.slice(0, 100))}]`;
  return path === '' || !isPlain ? `${path}${step}` : `${path}.${step}`;
}

function show(value: unknown): string {
  if (value === undefined) {
    return 'nothing';
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? 'an empty list' : 'a list';
  }
  return typeof value === 'object' ? 'a mapping' : JSON.stringify(value).slice(0, 100);
}
