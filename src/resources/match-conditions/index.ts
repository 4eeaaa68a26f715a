// Match conditions of webhooks. An entry of its own: it loads src/cel.
export { conditionsProblem, matchConditionEnvironment, MatchConditionEvaluator } from './match-conditions.ts';
export type { MatchResult } from './match-conditions.ts';
