import { jsonText } from '../../go/index.ts';
import type { FieldError } from '../field-error.ts';
import { invalid, notSupported, required, tooLong, tooMany, typeInvalid } from '../field-error.ts';

/** One violation of a schema, with the message of API servers. */
export interface SchemaProblem {
  /** `spec.replicas in body must be of type integer: "string"` */
  readonly text: string;
  readonly error: FieldError;
}

/** The path of whole objects in messages. */
export const NO_PATH = '<nil>';

/**
 * Maximum number of checks for one object: values against schemas, named fields, alternatives. An object of 1.5 MiB has
 * less than a million values, but a schema can require many checks of each. A million checks take about half a second.
 */
export const MAX_CHECKS = 2_000_000;

/** Cost of a problem in addition to its text, which limits their number. */
const PROBLEM_COST = 1_000;

/** Remaining budget for one object. */
export interface CheckBudget {
  left: number;
}

/** Result of checking a value against a schema. */
export class SchemaResult {
  readonly #budget: CheckBudget;
  #problems: Map<string, SchemaProblem> | undefined;
  /** Number of passed checks: of several alternatives, errors are reported for the one with the most. */
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

  /** Repeated problems are reported once. */
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

  /** Reports that the budget is exceeded. */
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

/** A path in the format of field names, without the leading dot of paths below the root. */
function fieldName(path: string): string {
  const name = path.startsWith('.') ? path.slice(1) : path;
  return name === '' ? NO_PATH : name;
}

/** The problem of a value at a path. `text` follows `spec.x in body`. */
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

/** A message of `anyOf` and similar keywords, without a field. */
export function compositeProblem(text: string): SchemaProblem {
  return { text, error: invalid(NO_PATH, '', text) };
}

/** A field that `additionalProperties: false` disallows. */
export function forbiddenField(path: string, name: string): SchemaProblem {
  const text = `${path}.${name} in body is a forbidden property`;
  return { text, error: invalid(fieldName(path), name, text) };
}

export function tooDeep(path: string, most: number): SchemaProblem {
  const detail = `nested more than ${most} levels deep`;
  // Prevents rules from running.
  const error: FieldError = { reason: 'FieldValueTooMany', field: fieldName(path), message: `Too many: ${detail}` };
  return { text: `${path} in body is ${detail}`, error };
}
