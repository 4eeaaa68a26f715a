/**
 * Parts that a type may consist of. Types of nested literals grow with the expression, but those of macros on each other
 * (`x.map(y, {y: y}).map(…)`) double with each link. Literals nested as deep as the parser allows stay below.
 */
export const MAX_TYPE_PARTS = 1_000;

/**
 * Parts of types that are looked at while one expression is checked: variables that stand for types with other variables
 * can spell out a type of any size. An expression of 20 kB with a mistake in every term stays below a tenth of it.
 */
export const MAX_TYPE_WORK = 2_000_000;

/** Candidates that an error about a call lists. */
export const MAX_LISTED_CANDIDATES = 8;

/** Cost that one expression may have at run time in API servers, about 0.1 s (apiserver, `PerCallLimit`). */
export const EXPRESSION_COST_LIMIT = 1_000_000;

/** Cost of all expressions of a policy for one binding and one parameter object, about 1 s (`RuntimeCELCostBudget`). */
export const POLICY_COST_BUDGET = 10_000_000;

/** Cost of all match conditions for one object, about 1/4 s (`RuntimeCELCostBudgetMatchConditions`). */
export const MATCH_CONDITIONS_COST_BUDGET = 2_500_000;

/**
 * Estimated cost that API servers accept of one rule of a CustomResourceDefinition, whatever objects look like
 * (apiextensions, `StaticEstimatedCostLimit`), and of all rules of one (`StaticEstimatedCRDCostLimit`). Policies have no
 * such limit, because the types of their objects are not known.
 */
export const SCHEMA_RULE_COST_LIMIT = 10_000_000;
export const SCHEMA_COST_LIMIT = 100_000_000;

/** Largest request that sizes are estimated for, in bytes (apiserver, `MaxRequestSizeBytes`). */
export const MAX_REQUEST_BYTES = 3 * 1024 * 1024;
