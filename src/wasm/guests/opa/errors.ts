import { CodedError } from '../../../values/index.ts';

/** Reasons why a builtin returns no value. Both make the call undefined, as in OPA's default (non-strict) mode. */
export type BuiltinErrorCode =
  /** An operand has the wrong type. */
  | 'operand-type'
  /** An operand has the right type, but an unusable value: an invalid pattern, out of range, not found. */
  | 'operand-value';

/** Thrown by builtins and caught by the Rego host. */
export class BuiltinError extends CodedError<BuiltinErrorCode> {
  override readonly name: string = 'BuiltinError';
}
