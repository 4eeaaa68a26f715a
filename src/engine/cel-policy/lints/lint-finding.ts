import type { Program } from '../../../cel/index.ts';

/** Codes of possible mistakes in policies that compile, explained in docs/policy-validation.md. */
export type LintCode =
  | 'comment'
  | 'immutable-field'
  | 'message-expression'
  | 'mutation'
  | 'namespace-object'
  | 'plain-or-value'
  | 'pod-subresource'
  | 'quantity'
  | 'request-value';

/** Codes of mistakes for which a policy is refused: it can never do what it says. */
type LintErrorCode = Extract<LintCode, 'mutation' | 'namespace-object'>;

interface Located {
  /** Path of the field, such as `validations[0].expression`. */
  readonly field: string;
  readonly message: string;
  /** Where in the expression, from 1; absent for the whole field. */
  readonly place?: { readonly expression: string; readonly line: number; readonly column: number };
}

/** A possible mistake in a policy that compiles: a warning, or an error. */
export type LintFinding = Located &
  (
    | { readonly code: LintCode; readonly isError?: undefined }
    | { readonly code: LintErrorCode; readonly isError: true }
  );

/** Compiled expressions by their fields. */
export type Programs = ReadonlyMap<string, Program>;

/** A finding at an offset of an expression. */
export function findingAt<Code extends LintCode>(
  code: Code,
  field: string,
  { text, checked }: Program,
  offset: number,
  message: string,
): Located & { readonly code: Code } {
  return { code, field, message, place: { expression: text, ...checked.source.positionOf(offset) } };
}
