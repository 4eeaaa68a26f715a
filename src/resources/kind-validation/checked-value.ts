import { isIP } from 'node:net';
import type { Quantity } from '../../cel/index.ts';
import { isJsonObject } from '../../values/index.ts';
import { quantityOf } from '../decoding/quantities.ts';
import { addErrors, duplicate, forbidden, invalid, notFound, notSupported, required } from '../field-error.ts';
import type { FieldError } from '../field-error.ts';
import { labelErrors, labelSelectorErrors } from '../selectors.ts';

/** A value under validation, with its path. All values of an object add to one list of errors. */
export class CheckedValue {
  /** `spec.containers[0].name` */
  readonly path: string;
  readonly value: unknown;
  readonly errors: FieldError[];

  constructor(value: unknown, path = '', errors: FieldError[] = []) {
    this.value = value;
    this.path = path;
    this.errors = errors;
  }

  /** A field of an object. Its value is undefined if the field is absent. */
  at(name: string): CheckedValue {
    const value = isJsonObject(this.value) && Object.hasOwn(this.value, name) ? this.value[name] : undefined;
    return new CheckedValue(value, this.path === '' ? name : `${this.path}.${name}`, this.errors);
  }

  /** The same value at another path, for errors that API servers report at that path. */
  named(path: string): CheckedValue {
    return new CheckedValue(this.value, path, this.errors);
  }

  /** Another value at this path. */
  read(value: unknown): CheckedValue {
    return new CheckedValue(value, this.path, this.errors);
  }

  /** The entries of a list. */
  get items(): readonly CheckedValue[] {
    return Array.isArray(this.value)
      ? this.value.map((item, index) => new CheckedValue(item, `${this.path}[${index}]`, this.errors))
      : [];
  }

  /** The entries of a map, with their keys. */
  get entries(): readonly (readonly [key: string, value: CheckedValue])[] {
    return isJsonObject(this.value)
      ? Object.entries(this.value).map(([key, value]) => [
          key,
          new CheckedValue(value, `${this.path}[${key}]`, this.errors),
        ])
      : [];
  }

  get isSet(): boolean {
    return this.value !== undefined && this.value !== null;
  }

  /** Whether it is absent, or an empty string, list or object. */
  get isEmpty(): boolean {
    return (
      !this.isSet || this.value === '' || (typeof this.value === 'object' && Object.keys(this.value ?? {}).length === 0)
    );
  }

  get text(): string {
    return typeof this.value === 'string' ? this.value : '';
  }

  get number(): number | undefined {
    return typeof this.value === 'number' ? this.value : undefined;
  }

  get quantity(): Quantity | undefined {
    return quantityOf(this.value);
  }

  add(...errors: readonly FieldError[]): void {
    addErrors(this.errors, errors);
  }

  invalid(detail: string, value: unknown = this.value ?? null): void {
    this.add(invalid(this.path, value, detail));
  }

  forbidden(detail: string): void {
    this.add(forbidden(this.path, detail));
  }

  required(detail = ''): void {
    this.add(required(this.path, detail));
  }

  notFound(): void {
    this.add(notFound(this.path, this.value));
  }

  duplicate(): void {
    this.add(duplicate(this.path, this.value));
  }

  /** Reports an error if the value is empty. Returns whether it is present. */
  needed(detail = ''): boolean {
    if (this.isEmpty) {
      this.required(detail);
    }
    return !this.isEmpty;
  }

  /** Reports an error if the value is present and not one of these strings. */
  oneOf(supported: readonly string[]): void {
    if (this.isSet && !supported.includes(this.text)) {
      this.add(notSupported(this.path, this.value, supported));
    }
  }

  /** Reports an invalid value that the message shows as a Go struct, with Go's names and order of fields. */
  invalidStruct(struct: object, detail: string): void {
    this.add(withStruct(invalid(this.path, '', detail), struct));
  }

  unsupportedStruct(struct: object, supported: readonly string[]): void {
    this.add(withStruct(notSupported(this.path, '', supported), struct));
  }

  duplicateStruct(struct: object): void {
    this.add(withStruct(duplicate(this.path, ''), struct));
  }

  unsupported(value: unknown, supported: readonly string[]): void {
    this.add(notSupported(this.path, value, supported));
  }

  /** Reports the problems of a name, if it is not empty. */
  follows(problems: (text: string) => readonly string[]): void {
    for (const problem of this.text === '' ? [] : problems(this.text)) {
      this.invalid(problem);
    }
  }

  nonNegative(): void {
    if (this.number !== undefined && this.number < 0) {
      this.invalid('must be greater than or equal to 0');
    }
  }

  between(min: number, max: number): void {
    if (this.number !== undefined && (this.number < min || this.number > max)) {
      this.invalid(`must be between ${min} and ${max}, inclusive`);
    }
  }

  port(): void {
    this.between(1, 65_535);
  }

  portOrName(): void {
    if (typeof this.value === 'string') {
      portNameProblems(this.value).forEach((problem) => this.invalid(problem));
    } else {
      this.port();
    }
  }

  ip(): void {
    if (isIP(this.text) === 0) {
      this.invalid('must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)');
    }
  }

  labels(): void {
    if (isJsonObject(this.value)) {
      addErrors(this.errors, labelErrors(this.value, this.path));
    }
  }

  labelSelector(): void {
    addErrors(this.errors, labelSelectorErrors(this.value, this.path));
  }

  /** Reports entries whose name an earlier entry has. */
  uniqueNames(): void {
    const seen = new Set<string>();
    for (const name of this.items.map((item) => item.at('name'))) {
      if (name.text !== '' && seen.has(name.text)) {
        name.duplicate();
      }
      seen.add(name.text);
    }
  }
}

function withStruct(error: FieldError, struct: object): FieldError {
  return { ...error, message: error.message.replace('""', () => JSON.stringify(struct)) };
}

/** Validates names of container ports: `http`, `web-1`. */
export function portNameProblems(name: string): string[] {
  const problems: string[] = [];
  if (name.length > 15) {
    problems.push('must be no more than 15 characters');
  }
  if (!/^[-a-z0-9]+$/.test(name)) {
    problems.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(name)) {
    problems.push('must contain at least one letter (a-z)');
  }
  if (name.includes('--')) {
    problems.push('must not contain consecutive hyphens');
  }
  if (name.startsWith('-') || name.endsWith('-')) {
    problems.push('must not begin or end with a hyphen');
  }
  return problems;
}

/** Validates keys of ConfigMaps and Secrets. */
export function configKeyProblems(key: string): string[] {
  const problems: string[] = [];
  if (key.length > 253) {
    problems.push('must be no more than 253 characters');
  }
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    problems.push(
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    );
  }
  if (key === '.') {
    problems.push("must not be '.'");
  } else if (key === '..') {
    problems.push("must not be '..'");
  } else if (key.startsWith('..')) {
    problems.push("must not start with '..'");
  }
  return problems;
}

/** Validates a percentage (`50%`) or a number, which must not be negative. */
export function percentOrNumber(place: CheckedValue): void {
  if (typeof place.value === 'string') {
    if (!/^[0-9]+%$/.test(place.value)) {
      place.invalid(
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      );
    } else if (Number.parseInt(place.value, 10) > 100) {
      place.invalid('must not be greater than 100%');
    }
  } else {
    place.nonNegative();
  }
}

/** The number in a value that {@link percentOrNumber} accepts: 50 for `50%`. */
export function amountOf(place: CheckedValue): number {
  return Number.parseInt(String(place.value), 10) || 0;
}
