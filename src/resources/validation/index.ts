// Validation by schema, with messages of API servers. Not exported by resources/index.ts, so that it is loaded only
// where it is used.
export { embeddedErrors } from './embedded-resources.ts';
export { equalJson } from './equality.ts';
export { parseFieldPath } from './field-path.ts';
export {
  fieldManagerErrors,
  FOREGROUND_FINALIZER,
  MAX_ANNOTATIONS_BYTES,
  metadataErrors,
  ORPHAN_FINALIZER,
} from './metadata-validation.ts';
export type { NameRule } from './metadata-validation.ts';
export { ObjectSchema } from './object-schema.ts';
export { additionalOf, MAX_NESTING } from './schema-fields.ts';
export { MAX_FOUND_CHARACTERS, unknownFields } from './pruning.ts';
export { RuleCompiler } from './rule-programs.ts';
export type { CompiledRule } from './rule-programs.ts';
export { SchemaValidator } from './schema-validator.ts';
export { formatCheck } from './formats.ts';
