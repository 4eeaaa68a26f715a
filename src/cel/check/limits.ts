/**
 * Maximum number of parts of a type. Types of nested literals grow with the expression, but chained macros (`x.map(y,
 * {y: y}).map(…)`) double the type with each link. Literals at the parser's maximum nesting stay below.
 */
export const MAX_TYPE_PARTS = 1_000;

/**
 * Maximum number of type parts visited while one expression is checked: type variables that stand for types with other
 * variables can expand to a type of any size. An expression of 20 kB with an error in every term needs less than a
 * tenth.
 */
export const MAX_TYPE_WORK = 2_000_000;

/** Maximum number of candidates in an error about a call. */
export const MAX_LISTED_CANDIDATES = 8;

/** Maximum run-time cost of one expression in API servers, about 0.1 s (apiserver, `PerCallLimit`). */
export const EXPRESSION_COST_LIMIT = 1_000_000;

/**
 * Cost budget for all expressions of a policy with one binding and one parameter object, about 1 s
 * (`RuntimeCELCostBudget`).
 */
export const POLICY_COST_BUDGET = 10_000_000;

/** Cost budget for all match conditions of one object, about 1/4 s (`RuntimeCELCostBudgetMatchConditions`). */
export const MATCH_CONDITIONS_COST_BUDGET = 2_500_000;

/**
 * Maximum estimated cost of one rule of a CustomResourceDefinition (apiextensions, `StaticEstimatedCostLimit`), and of
 * all its rules (`StaticEstimatedCRDCostLimit`). Policies have no such limit, because their object types are unknown.
 */
export const SCHEMA_RULE_COST_LIMIT = 10_000_000;
export const SCHEMA_COST_LIMIT = 100_000_000;

/** Maximum request size in bytes that estimates assume (apiserver, `MaxRequestSizeBytes`). */
export const MAX_REQUEST_BYTES = 3 * 1024 * 1024;

/** Maximum depth of nested lists, maps and references: schemas can be recursive. */
export const MAX_SCHEMA_DEPTH = 64;
