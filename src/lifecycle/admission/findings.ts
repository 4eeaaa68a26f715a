import type { FieldError } from '../../resources/index.ts';
import type { ContributedFindings } from './contributed-kinds.ts';
import type { RejectionCode, WarningCode } from './rule-codes.ts';
import { shortened } from '../../values/index.ts';

/** Characters of one message, which may quote an expression of a hundred thousand. */
const MAX_MESSAGE_CHARACTERS = 4096;
/** Errors of one object. With {@link MAX_MESSAGE_CHARACTERS}, a response stays below a megabyte. */
const MAX_FINDINGS = 100;
/** API servers pass on at most 4 KiB of warnings per request. */
const MAX_WARNINGS = 10;
const MAX_WARNING_CHARACTERS = 400;

/** A possible mistake. */
export interface CodedWarning {
  readonly code: string;
  readonly field: string;
  readonly text: string;
}

/** Errors and warnings about one object. Each ends with the code of its rule, see docs/policy-validation.md. */
export class Findings {
  #errors: FieldError[] = [];
  readonly #earlier: readonly string[];
  readonly #warned: CodedWarning[] = [];
  #omitted = 0;

  /** @param warnings of an earlier check of the same object */
  constructor(warnings: readonly string[] = []) {
    this.#earlier = warnings;
  }

  get errors(): readonly FieldError[] {
    const more = `Too many: ${this.#omitted} more problems: fix these first`;
    return this.#omitted === 0
      ? this.#errors
      : [...this.#errors, { reason: 'FieldValueTooMany', field: '<nil>', message: more }];
  }

  get warnings(): readonly string[] {
    return [...this.#earlier, ...this.#warned.map(({ code, field, text }) => `${field}: ${text} [${code}]`)];
  }

  /** The warnings of this check. */
  get warned(): readonly CodedWarning[] {
    return this.#warned;
  }

  /** Whether there is an error at a field or below it. */
  has(field: string): boolean {
    return this.#errors.some((error) => error.field === field || /^[.[]/.test(below(error.field, field)));
  }

  /** Findings by rules of other controllers, with their codes. */
  add({ errors, warnings }: ContributedFindings): void {
    for (const { code, ...error } of errors) {
      this.#reject(code, error);
    }
    for (const { code, field, text } of warnings) {
      this.#warn(code, field, text);
    }
  }

  reject(code: RejectionCode, error: FieldError): void {
    this.#reject(code, error);
  }

  #reject(code: string, error: FieldError): void {
    if (this.#errors.length === MAX_FINDINGS) {
      this.#omitted += 1;
    } else {
      this.#errors.push({ ...error, message: `${shortened(error.message, MAX_MESSAGE_CHARACTERS)} [${code}]` });
    }
  }

  /** Takes a list, because a hostile object can have more errors than a call takes arguments. */
  rejectAll(code: RejectionCode, errors: readonly FieldError[]): void {
    for (const error of errors) {
      this.reject(code, error);
    }
  }

  /** Turns errors that the old object had too into warnings, so that users can fix one at a time. */
  downgradeKnown(before: Findings): void {
    const known = new Set(before.#errors.map(keyOf));
    const old = this.#errors.filter((error) => known.has(keyOf(error)));
    this.#errors = this.#errors.filter((error) => !known.has(keyOf(error)));
    for (const { field, message } of old) {
      this.warn('wrong-before', field, message);
    }
  }

  warn(code: WarningCode, field: string, text: string): void {
    this.#warn(code, field, text);
  }

  #warn(code: string, field: string, text: string): void {
    if (this.#earlier.length + this.#warned.length < MAX_WARNINGS) {
      this.#warned.push({ code, field, text: shortened(text.replaceAll(/\s+/g, ' '), MAX_WARNING_CHARACTERS) });
    }
  }
}

function keyOf({ field, message }: FieldError): string {
  return JSON.stringify([field, message]);
}

/** The rest of a field's path after a prefix; empty without that prefix. */
function below(field: string, path: string): string {
  return field.startsWith(path) ? field.slice(path.length) : '';
}
