import { CelError, type Program } from '../../cel/index.ts';
import {
  type MatchCondition,
  type MatchSelector,
  NAMESPACE_NAME_LABEL,
  type PolicyMatch,
} from '../../resources/index.ts';
import { matchConditionEnvironment } from '../../resources/match-conditions/index.ts';
import { expressionReads, type FieldRead } from '../cel-policy/expression-reads.ts';

/** What selectors and match conditions read. Conditions that do not compile read nothing: they fail. */
export function matchReads({ objectSelector, namespaceSelector, matchConditions }: PolicyMatch): readonly FieldRead[] {
  return [
    ...selectorReads('spec.objectSelector', 'object', objectSelector),
    ...selectorReads('spec.namespaceSelector', 'namespaceObject', namespaceSelector),
    ...expressionReads(conditionPrograms(matchConditions)),
  ];
}

function selectorReads(
  field: string,
  variable: string,
  { matchLabels = {}, matchExpressions = [] }: MatchSelector,
): readonly FieldRead[] {
  // That label is the name, which every object says of its namespace.
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
  return keys.every((key) => key === NAMESPACE_NAME_LABEL) ? [] : [{ field, path: [variable, 'metadata', 'labels'] }];
}

function conditionPrograms(conditions: readonly MatchCondition[]): ReadonlyMap<string, Program> {
  const programs = new Map<string, Program>();
  const environment = conditions.length === 0 ? undefined : matchConditionEnvironment();
  for (const [index, { expression }] of conditions.entries()) {
    try {
      const program = environment?.compile(expression);
      if (program !== undefined) {
        programs.set(`spec.matchConditions[${index}].expression`, program);
      }
    } catch (error) {
      if (!(error instanceof CelError)) {
        throw error;
      }
    }
  }
  return programs;
}
