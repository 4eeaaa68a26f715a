import { jsonText, numberText, quote } from '../go/index.ts';

/** Why a field is refused: the causes that Kubernetes has (`metav1.CauseType`). */
export type FieldErrorReason =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'InternalError';

/** One thing that is wrong with an object, in the words of an API server. */
export interface FieldError {
  readonly reason: FieldErrorReason;
  /** `spec.rules[0].operations` */
  readonly field: string;
  /** Without the field: `Invalid value: "x": must be…`, `Required value`, `Unsupported value: "x": supported values: "a", "b"`. */
  readonly message: string;
}

/** Characters of all errors that are said of one object: more would fill the memory where a long name is in each of them. */
export const MAX_ERROR_CHARACTERS = 1024 * 1024;

/** As many of the errors as anybody may want to read: up to {@link MAX_ERROR_CHARACTERS}, and how many more there are. */
export function limitErrors(errors: readonly FieldError[]): FieldError[] {
  let characters = 0;
  const end = errors.findIndex(({ field, message }) => {
    const isFull = characters > MAX_ERROR_CHARACTERS;
    characters += field.length + message.length;
    return isFull;
  });
  if (end === -1) {
    return [...errors];
  }
  const message = `Too many: ${errors.length - end} more errors`;
  return [...errors.slice(0, end), { reason: 'FieldValueTooMany', field: '<nil>', message }];
}

/** Adds errors to others. A hostile object has more of them than a call takes arguments. */
export function addErrors(to: FieldError[], ...more: readonly (readonly FieldError[])[]): void {
  for (const errors of more) {
    for (const error of errors) {
      to.push(error);
    }
  }
}

/** `Invalid value: …: detail` */
export function invalid(field: string, value: unknown, detail: string): FieldError {
  return invalidText(field, valueText(value), detail);
}

/** {@link invalid} of a value that is text already. */
export function invalidText(field: string, value: string, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message: withDetail(`Invalid value: ${value}`, detail) };
}

/** The value has a type that the schema does not have. */
export function typeInvalid(field: string, value: unknown, detail: string): FieldError {
  return { ...invalid(field, value, detail), reason: 'FieldValueTypeInvalid' };
}

export function required(field: string, detail = ''): FieldError {
  return { reason: 'FieldValueRequired', field, message: withDetail('Required value', detail) };
}

export function forbidden(field: string, detail: string): FieldError {
  return { reason: 'FieldValueForbidden', field, message: withDetail('Forbidden', detail) };
}

export function duplicate(field: string, value: unknown): FieldError {
  return { reason: 'FieldValueDuplicate', field, message: `Duplicate value: ${valueText(value)}` };
}

export function notFound(field: string, value: unknown): FieldError {
  return { reason: 'FieldValueNotFound', field, message: `Not found: ${valueText(value)}` };
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const detail = supported.length === 0 ? '' : `supported values: ${supported.map(quote).join(', ')}`;
  return {
    reason: 'FieldValueNotSupported',
    field,
    message: withDetail(`Unsupported value: ${valueText(value)}`, detail),
  };
}

/** Too long, in bytes; the message does not repeat the value. */
export function tooLong(field: string, most: number): FieldError {
  const detail = `may not be more than ${most} ${most === 1 ? 'byte' : 'bytes'}`;
  return { reason: 'FieldValueTooLong', field, message: withDetail('Too long', detail) };
}

export function tooMany(field: string, actual: number, most: number): FieldError {
  const detail = `must have at most ${most} ${most === 1 ? 'item' : 'items'}`;
  return { reason: 'FieldValueTooMany', field, message: withDetail(`Too many: ${actual}`, detail) };
}

function withDetail(start: string, detail: string): string {
  return detail === '' ? start : `${start}: ${detail}`;
}

/** A value as messages show it. */
export function valueText(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quote(value);
    case 'number':
      return numberText(value);
    case 'boolean':
      return String(value);
    default:
      return jsonText(value);
  }
}
