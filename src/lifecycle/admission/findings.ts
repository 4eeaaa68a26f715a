import type { LintFinding } from '../../engine/index.ts';
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
  /** Where in the expression of the field; absent for the whole field. */
  readonly place?: ExpressionPlace;
}

type ExpressionPlace = NonNullable<LintFinding['place']>;

/** Errors and warnings about one object. Each ends with the code of its rule, see docs/policy-validation.md. */
export class Findings {
  #errors: FieldError[] = [];
  readonly #earlier: readonly string[];
  readonly #warned: CodedWarning[] = [];
  readonly #places = new Map<FieldError, ExpressionPlace>();
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

  /** Where in the expression of its field an error is; undefined for the whole field. */
  placeOf(error: FieldError): ExpressionPlace | undefined {
    return this.#places.get(error);
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

  reject(code: RejectionCode, error: FieldError, place?: ExpressionPlace): void {
    this.#reject(code, error, place);
  }

  #reject(code: string, error: FieldError, place?: ExpressionPlace): void {
    if (this.#errors.length === MAX_FINDINGS) {
      this.#omitted += 1;
    } else {
      const coded = { ...error, message: `${shortened(error.message, MAX_MESSAGE_CHARACTERS)} [${code}]` };
      this.#errors.push(coded);
      if (place !== undefined) {
        this.#places.set(coded, place);
      }
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

  warn(code: WarningCode, field: string, text: string, place?: ExpressionPlace): void {
    this.#warn(code, field, text, place);
  }

  #warn(code: string, field: string, text: string, place?: ExpressionPlace): void {
    if (this.#earlier.length + this.#warned.length < MAX_WARNINGS) {
      const shown = shortened(text.replaceAll(/\s+/g, ' '), MAX_WARNING_CHARACTERS);
      this.#warned.push({ code, field, text: shown, ...(place === undefined ? {} : { place }) });
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
