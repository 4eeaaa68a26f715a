export { ADMISSION_REQUEST, ADMISSION_REQUEST_STRUCTS } from './model/admission-types.ts';
export type { Expression } from './model/ast.ts';
export {
  escapeField,
  EXPRESSION_COST_LIMIT,
  formatType,
  MATCH_CONDITIONS_COST_BUDGET,
  MUTATION_TYPES,
  mutationTypesOf,
  ObjectTypes,
  POLICY_COST_BUDGET,
  SCHEMA_COST_LIMIT,
  SCHEMA_RULE_COST_LIMIT,
  SchemaTypes,
} from './check/index.ts';
export type { InferredType, StructuralSchema, TypeProvider } from './check/index.ts';
export { createEnvironment, Environment, languageOf, MAX_KUBERNETES_VERSION } from './environment.ts';
export type { EnvironmentOptions } from './environment.ts';
export { CelError, describeIssue, formatIssue } from './model/errors.ts';
export type { CelIssue } from './model/errors.ts';
export {
  Cancellation,
  CelDuration,
  CelOptional,
  CelStruct,
  CelTimestamp,
  CelTypeValue,
  CostCounter,
  equalValues,
  LazyStruct,
  parseCelJson,
  printValue,
  textInJson,
  typeNameOf,
} from './evaluate/index.ts';
export type { Bindings, CelEvaluation, StructFactory } from './evaluate/index.ts';
export { AUTHORIZER, AuthorizerValue, MUTATION_LIBRARIES, RESOURCE_CHECK } from './libraries/index.ts';
export type { AuthorizationAnswer, AuthorizationRequest, AuthorizationUser, CelAuthorizer } from './libraries/index.ts';
export type { OverloadRow } from './libraries/index.ts';
export { parseQuantity, Quantity } from './quantity/index.ts';
export {
  callsFunction,
  childrenOf,
  expressionsOf,
  findCertain,
  readsField,
  usesVariable,
} from './model/expression-tree.ts';
export { fieldReads } from './model/field-reads.ts';
export type { ReadPath } from './model/field-reads.ts';
export { allowedSince, newExpressionsVersion } from './model/library.ts';
export { Program } from './program.ts';
export { languageReference } from './reference.ts';
export { commentsOf, isIdentifier } from './syntax/index.ts';
export {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  optionalOf,
  STRING,
  struct,
  TIMESTAMP,
} from './model/type.ts';
export type { CelType } from './model/type.ts';
export { CelDouble, CelMap, CelObject, CelUint, EvaluationFailure } from './model/value.ts';
export type { CelRecord, CelResult, CelValue } from './model/value.ts';
