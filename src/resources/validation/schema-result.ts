import { jsonText } from '../../go/index.ts';
import type { FieldError } from '../field-error.ts';
import { invalid, notSupported, required, tooLong, tooMany, typeInvalid } from '../field-error.ts';

/** One thing that a schema does not accept, in the words of API servers. */
export interface SchemaProblem {
  /** `spec.replicas in body must be of type integer: "string"` */
  readonly text: string;
  readonly error: FieldError;
}

/** The path of what has none: of messages about a whole object. */
export const NO_PATH = '<nil>';

/**
 * Checks of one object: values against schemas, fields that schemas name, alternatives. An object of 1.5 MiB has less than a
 * million values, but a schema can ask very much of each of them. A million checks take about half a second.
 */
export const MAX_CHECKS = 2_000_000;

/** What a problem counts besides the length of its text: nobody reads a thousand of them. */
const PROBLEM_COST = 1_000;

/** What may still be done for one object. */
export interface CheckBudget {
  left: number;
}

/** What checking a value against a schema found. */
export class SchemaResult {
  readonly #budget: CheckBudget;
  #problems: Map<string, SchemaProblem> | undefined;
  /** Checks that were passed: of several alternatives the one with most of them is taken to be meant. */
  matches = 0;

  constructor(budget: CheckBudget) {
    this.#budget = budget;
  }

  get isValid(): boolean {
    return this.#problems === undefined;
  }

  get problems(): Iterable<SchemaProblem> {
    return this.#problems?.values() ?? [];
  }

  /** What is said twice is said once. */
  add(problem: SchemaProblem): void {
    const isAffordable = this.#budget.left >= 0;
    this.#budget.left -= PROBLEM_COST + problem.text.length;
    if (isAffordable) {
      this.#keep(problem);
    }
  }

  merge(other: SchemaResult): void {
    this.matches += other.matches;
    if (this.#problems === undefined) {
      this.#problems = other.#problems;
    } else {
      for (const problem of other.problems) {
        this.#keep(problem);
      }
    }
  }

  /** Says that the budget did not suffice. */
  addTooMuchWork(): void {
    const text = `more than ${MAX_CHECKS} checks by the schema: make the object smaller, or the schema simpler`;
    this.#keep({ text, error: { reason: 'FieldValueTooMany', field: NO_PATH, message: `Too many: ${text}` } });
  }

  #keep(problem: SchemaProblem): void {
    this.#problems ??= new Map();
    if (!this.#problems.has(problem.text)) {
      this.#problems.set(problem.text, problem);
    }
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
