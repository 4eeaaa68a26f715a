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
