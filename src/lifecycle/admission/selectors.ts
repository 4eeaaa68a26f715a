import { labelSelectorErrors } from '../../resources/index.ts';
import type { FieldError } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

/** A `metav1.LabelSelector` at a path, where there is one. */
export function checkSelector(selector: unknown, path: string, findings: Findings): void {
  findings.rejectAll('selector', labelSelectorErrors(selector, path).map(withAdvice));
}

/** API servers do not say which operators there are. */
function withAdvice(error: FieldError): FieldError {
  return error.field.endsWith('.operator')
    ? { ...error, message: `${error.message}: expected In, NotIn, Exists or DoesNotExist` }
    : error;
}
