import { isJsonObject, labelSelectorErrors, textOf, textsOf } from '../../resources/index.ts';
import type { FieldError, JsonObject } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

/** A `metav1.LabelSelector` at a path, where there is one. */
export function checkSelector(selector: unknown, path: string, findings: Findings): void {
  const errors = labelSelectorErrors(selector, path).map(withAdvice);
  findings.rejectAll('selector', errors);
  if (errors.length === 0 && isJsonObject(selector)) {
    warnOfContradictions(selector, path, findings);
  }
}

/** API servers do not say which operators there are. */
function withAdvice(error: FieldError): FieldError {
  return error.field.endsWith('.operator')
    ? { ...error, message: `${error.message}: expected In, NotIn, Exists or DoesNotExist` }
    : error;
}

/** What is asked of the label of one key. */
interface Demand {
  /** The only values that it may have. Undefined: any. */
  among: ReadonlySet<string> | undefined;
  readonly without: Set<string>;
  mustExist: boolean;
  mustNotExist: boolean;
}

/** A policy whose selector nothing can have is never asked, and nobody would see that. */
function warnOfContradictions({ matchLabels, matchExpressions }: JsonObject, path: string, findings: Findings): void {
  const demands = new Map<string, Demand>();
  const demandOf = (key: string): Demand => {
    const known = demands.get(key) ?? { among: undefined, without: new Set(), mustExist: false, mustNotExist: false };
    demands.set(key, known);
    return known;
  };
  const mustBe = (demand: Demand, values: readonly string[]): void => {
    demand.mustExist = true;
    demand.among = new Set(values.filter((value) => demand.among?.has(value) ?? true));
  };
  for (const [key, value] of Object.entries(isJsonObject(matchLabels) ? matchLabels : {})) {
    mustBe(demandOf(key), [textOf(value)]);
  }
  for (const one of Array.isArray(matchExpressions) ? matchExpressions.filter(isJsonObject) : []) {
    const demand = demandOf(textOf(one.key));
    const values = textsOf(one.values);
    switch (one.operator) {
      case 'In':
        mustBe(demand, values);
        break;
      case 'NotIn':
        values.forEach((value) => demand.without.add(value));
        break;
      case 'Exists':
        demand.mustExist = true;
        break;
      case 'DoesNotExist':
        demand.mustNotExist = true;
        break;
      default:
    }
  }
  for (const [key, { among, without, mustExist, mustNotExist }] of demands) {
    const hasNoValue = among !== undefined && [...among].every((value) => without.has(value));
    if (hasNoValue || (mustExist && mustNotExist)) {
      const text = `nothing can meet what is asked of the label "${key}": the policy is never asked. Remove one of the requirements`;
      findings.warn('selector-matches-nothing', path, text);
    }
  }
}
