export { check, inferType } from './checker.ts';
export type { CheckedExpression, InferredType } from './checker.ts';
export { estimateCost } from './cost-estimate.ts';
export type { SizeEstimator } from './cost-estimate.ts';
export { Declarations } from './declarations.ts';
export type { TypeProvider } from './declarations.ts';
export {
  EXPRESSION_COST_LIMIT,
  MATCH_CONDITIONS_COST_BUDGET,
  POLICY_COST_BUDGET,
  SCHEMA_COST_LIMIT,
  SCHEMA_RULE_COST_LIMIT,
} from './limits.ts';
export { validateLiterals } from './literal-validation.ts';
export { literalPatternSize } from './pattern-limits.ts';
export { MUTATION_TYPES, mutationTypesOf } from './mutation-types.ts';
export { ObjectTypes } from './object-types.ts';
export { SchemaTypes } from './schema-types.ts';
export type { StructuralSchema } from './schema-types.ts';
export { escapeField } from './field-escaping.ts';
export { formatType } from '../syntax/type-text.ts';
