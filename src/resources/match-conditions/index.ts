// Match conditions of webhooks. An entry of its own: it loads src/cel.
export { conditionsProblem, matchConditionEnvironment, MatchConditions } from './match-conditions.ts';
export type { Matching } from './match-conditions.ts';
