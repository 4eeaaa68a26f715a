// An entry of its own for who only reads the choices of an administrator.
export { ANNOTATION_MODES } from './projection-options.ts';
export type { AnnotationMode, ProjectionOptions } from './projection-options.ts';
