import { jsonText, numberText, quote } from '../go/index.ts';

/** Why a field is invalid: the causes of Kubernetes (`metav1.CauseType`). */
type FieldErrorReason =
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

/** One mistake in an object, with the message of an API server. */
export interface FieldError {
  readonly reason: FieldErrorReason;
  /** `spec.rules[0].operations` */
  readonly field: string;
  /** Without the field: `Invalid value: "x": must be…`, `Required value`, `Unsupported value: "x": supported values: "a", "b"`. */
  readonly message: string;
}

/** Maximum length of all errors of an object: a long name in each of very many errors would exhaust memory. */
export const MAX_ERROR_CHARACTERS = 1024 * 1024;

/** The first errors, up to {@link MAX_ERROR_CHARACTERS}, and the number of the others. */
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

/** Appends errors. A hostile object may have more of them than a call may have arguments. */
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

/** {@link invalid} with the value as text. */
export function invalidText(field: string, value: string, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message: withDetail(`Invalid value: ${value}`, detail) };
}

/** The type of the value is not in the schema. */
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

/** Too long, in bytes; the message omits the value. */
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

/** A value in the format of messages. */
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
