/** Why a builtin gave no value. Both codes make the call undefined, as in OPA's default (non-strict) mode. */
export type BuiltinErrorCode =
  /** An operand has a type that the builtin does not take. */
  | 'operand-type'
  /** The operands' types are right, but their contents cannot be used: bad pattern, out of range, not found. */
  | 'operand-value';

/** Thrown by builtins; never leaves the Rego host. */
export class BuiltinError extends Error {
  override readonly name: string = 'BuiltinError';
  readonly code: BuiltinErrorCode;

  constructor(code: BuiltinErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
