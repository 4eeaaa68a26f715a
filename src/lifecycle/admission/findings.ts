import type { FieldError } from '../../resources/index.ts';
import type { RejectionCode, WarningCode } from './rule-codes.ts';

/** Characters of one message: an expression may have a hundred thousand, which nobody reads in a terminal. */
const MAX_MESSAGE_CHARACTERS = 4096;
/** What is said of one object at most. With {@link MAX_MESSAGE_CHARACTERS} an answer stays below a megabyte. */
export const MAX_FINDINGS = 100;
/** API servers pass on 4 KiB of warnings per request in all. */
const MAX_WARNINGS = 10;
const MAX_WARNING_CHARACTERS = 400;

/** What is wrong with an object, and what may not be meant. Each ends in the code of its rule, as the documentation lists it. */
export class Findings {
  #errors: FieldError[] = [];
  readonly #warnings: string[] = [];
  #leftOut = 0;

  /** All that is wrong, in the order in which it was found. */
  get errors(): readonly FieldError[] {
    const more = `Too many: ${this.#leftOut} more problems: mend these first`;
    return this.#leftOut === 0
      ? this.#errors
      : [...this.#errors, { reason: 'FieldValueTooMany', field: '<nil>', message: more }];
  }

  /** What users are told besides. */
  get warnings(): readonly string[] {
    return this.#warnings;
  }

  /** Whether something was found at a field or below. */
  has(field: string): boolean {
    return this.#errors.some((error) => error.field === field || /^[.[]/.test(below(error.field, field)));
  }

  reject(code: RejectionCode, error: FieldError): void {
    if (this.#errors.length === MAX_FINDINGS) {
      this.#leftOut += 1;
    } else {
      this.#errors.push({ ...error, message: `${cut(error.message, MAX_MESSAGE_CHARACTERS)} [${code}]` });
    }
  }

  /** A hostile object has more errors than a call takes arguments. */
  rejectAll(code: RejectionCode, errors: readonly FieldError[]): void {
    for (const error of errors) {
      this.reject(code, error);
    }
  }

  /** Turns what was wrong before, and is as it was, into warnings: who mends one thing need not mend all at once. */
  pardon(before: Findings): void {
    const known = new Set(before.#errors.map(keyOf));
    const old = this.#errors.filter((error) => known.has(keyOf(error)));
    this.#errors = this.#errors.filter((error) => !known.has(keyOf(error)));
    for (const { field, message } of old) {
      this.warn('wrong-before', field, message);
    }
  }

  warn(code: WarningCode, field: string, text: string): void {
    if (this.#warnings.length < MAX_WARNINGS) {
      this.#warnings.push(`${field}: ${cut(text.replaceAll(/\s+/g, ' '), MAX_WARNING_CHARACTERS)} [${code}]`);
    }
  }
}

function keyOf({ field, message }: FieldError): string {
  return JSON.stringify([field, message]);
}

/** What comes behind a path in a longer one; empty when the longer one does not begin with it. */
function below(field: string, path: string): string {
  return field.startsWith(path) ? field.slice(path.length) : '';
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, '')}…` : text;
}
