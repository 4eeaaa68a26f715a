// Validation by schema, in an API server's words. Apart from resources/index.ts, so that only who validates loads it.
export { embeddedErrors } from './embedded-resources.ts';
export { equalJson } from './equality.ts';
export { parseFieldPath } from './field-path.ts';
export { fieldManagerErrors, FOREGROUND_FINALIZER, metadataErrors, ORPHAN_FINALIZER } from './metadata-validation.ts';
export type { NameRule } from './metadata-validation.ts';
export { ObjectSchema } from './object-schema.ts';
export { additionalOf, MAX_NESTING } from './own-property.ts';
export { compilePattern } from './patterns.ts';
export { MAX_FOUND_CHARACTERS, unknownFields } from './pruning.ts';
export { RuleCompiler } from './rule-programs.ts';
export type { CompiledRule } from './rule-programs.ts';
export { SchemaValidator } from './schema-validator.ts';
