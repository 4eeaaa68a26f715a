export { ObjectSchema } from './object-schema.ts';
export { parseFieldPath } from './field-path.ts';
export { checkStructural } from './structural.ts';
