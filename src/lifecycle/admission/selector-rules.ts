import { isJsonObject, labelSelectorErrors, textOf, textsOf } from '../../resources/index.ts';
import type { FieldError, JsonObject } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

/** Checks an optional `metav1.LabelSelector`. */
export function checkSelector(selector: unknown, path: string, findings: Findings): void {
  const errors = labelSelectorErrors(selector, path).map(withAdvice);
  findings.rejectAll('selector', errors);
  if (errors.length === 0 && isJsonObject(selector)) {
    warnOfContradictions(selector, path, findings);
  }
}

/** API servers' messages do not list the operators. */
function withAdvice(error: FieldError): FieldError {
  return error.field.endsWith('.operator')
    ? { ...error, message: `${error.message}: expected In, NotIn, Exists or DoesNotExist` }
    : error;
}

/** The requirements for one label. */
interface Requirements {
  /** The permitted values. Undefined: any. */
  permitted: ReadonlySet<string> | undefined;
  readonly excluded: Set<string>;
  mustExist: boolean;
  mustNotExist: boolean;
}

/** Warns of a selector that matches no object: the policy would never apply, without any other sign. */
function warnOfContradictions({ matchLabels, matchExpressions }: JsonObject, path: string, findings: Findings): void {
  const byLabel = new Map<string, Requirements>();
  const requirementsOf = (key: string): Requirements => {
    const known = byLabel.get(key) ?? {
      permitted: undefined,
      excluded: new Set(),
      mustExist: false,
      mustNotExist: false,
    };
    byLabel.set(key, known);
    return known;
  };
  const mustBe = (requirements: Requirements, values: readonly string[]): void => {
    requirements.mustExist = true;
    requirements.permitted = new Set(values.filter((value) => requirements.permitted?.has(value) ?? true));
  };
  for (const [key, value] of Object.entries(isJsonObject(matchLabels) ? matchLabels : {})) {
    mustBe(requirementsOf(key), [textOf(value)]);
  }
  for (const one of Array.isArray(matchExpressions) ? matchExpressions.filter(isJsonObject) : []) {
    const requirements = requirementsOf(textOf(one.key));
    const values = textsOf(one.values);
    switch (one.operator) {
      case 'In':
        mustBe(requirements, values);
        break;
      case 'NotIn':
        values.forEach((value) => requirements.excluded.add(value));
        break;
      case 'Exists':
        requirements.mustExist = true;
        break;
      case 'DoesNotExist':
        requirements.mustNotExist = true;
        break;
      default:
    }
  }
  for (const [key, { permitted, excluded, mustExist, mustNotExist }] of byLabel) {
    const hasNoValue = permitted !== undefined && [...permitted].every((value) => excluded.has(value));
    if (hasNoValue || (mustExist && mustNotExist)) {
      const text = `no object can meet the requirements for the label "${key}": the policy never applies. Remove one of them`;
      findings.warn('selector-matches-nothing', path, text);
    }
  }
}
