import type { FieldError } from '../field-error.ts';
import { invalid, notSupported, required, tooLong, tooMany, typeInvalid } from '../field-error.ts';
import { jsonText } from '../go-text.ts';

/** One thing that a schema does not accept, in the words of API servers. */
export interface SchemaProblem {
  /** `spec.replicas in body must be of type integer: "string"` */
  readonly text: string;
  readonly error: FieldError;
}

/** The path of what has none: of messages about a whole object. */
export const NO_PATH = '<nil>';

/** What checking a value against a schema found. */
export class SchemaResult {
  readonly #problems = new Map<string, SchemaProblem>();
  /** Checks that were passed: of several alternatives the one with most of them is taken to be meant. */
  matches = 0;

  get isValid(): boolean {
    return this.#problems.size === 0;
  }

  get problems(): Iterable<SchemaProblem> {
    return this.#problems.values();
  }

  /** What is said twice is said once. */
  add(problem: SchemaProblem): void {
    if (!this.#problems.has(problem.text)) {
      this.#problems.set(problem.text, problem);
    }
  }

  merge(other: SchemaResult): void {
    for (const problem of other.problems) {
      this.add(problem);
    }
    this.matches += other.matches;
  }

  /** Forgets what is wrong: it was so before. */
  forgive(): void {
    this.#problems.clear();
  }
}

/** A path as fields are named: those of the root have a dot in front while they are walked to. */
function fieldName(path: string): string {
  const name = path.startsWith('.') ? path.slice(1) : path;
  return name === '' ? NO_PATH : name;
}

/** The problem of a value at a path. `text` goes on behind `spec.x in body`. */
function problemAt(path: string, text: string, make: (field: string, text: string) => FieldError): SchemaProblem {
  const full = `${path} in body ${text}`;
  return { text: full, error: make(fieldName(path), full) };
}

export function wrongValue(path: string, value: unknown, text: string): SchemaProblem {
  return problemAt(path, text, (field, full) => invalid(field, value, full));
}

export function wrongType(path: string, expected: string, actual: string): SchemaProblem {
  const text = `must be of type ${expected}: ${JSON.stringify(actual)}`;
  return problemAt(path, text, (field, full) => typeInvalid(field, actual, full));
}

export function missingField(path: string): SchemaProblem {
  return problemAt(path, 'is required', (field) => required(field));
}

export function notInEnum(path: string, value: unknown, allowed: readonly unknown[]): SchemaProblem {
  const values = allowed.map((one) => (typeof one === 'string' ? one : jsonText(one)));
  return problemAt(path, `should be one of [${values.join(' ')}]`, (field) => notSupported(field, value, values));
}

export function tooLongText(path: string, most: number): SchemaProblem {
  return problemAt(path, `should be at most ${most} chars long`, (field) => tooLong(field, most));
}

export function tooManyItems(path: string, actual: number, most: number, what: 'items' | 'properties'): SchemaProblem {
  return problemAt(path, `should have at most ${most} ${what}`, (field) => tooMany(field, actual, most));
}

/** What `anyOf` and its kind say: of no field in particular. */
export function compositeProblem(text: string): SchemaProblem {
  return { text, error: invalid(NO_PATH, '', text) };
}

/** A field that `additionalProperties: false` does not allow. */
export function forbiddenField(path: string, name: string): SchemaProblem {
  const text = `${path}.${name} in body is a forbidden property`;
  return { text, error: invalid(fieldName(path), name, text) };
}

export function tooDeep(path: string, most: number): SchemaProblem {
  const detail = `nested more than ${most} levels deep`;
  // Of a kind after which rules are not run.
  const error: FieldError = { reason: 'FieldValueTooMany', field: fieldName(path), message: `Too many: ${detail}` };
  return { text: `${path} in body is ${detail}`, error };
}
