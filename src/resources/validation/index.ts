export { ObjectSchema } from './object-schema.ts';
