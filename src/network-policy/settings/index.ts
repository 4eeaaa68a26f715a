// An entry of its own for who only reads the choices of an administrator.
export { ANNOTATION_MODES } from './annotation-mode.ts';
export type { AnnotationMode } from './annotation-mode.ts';
