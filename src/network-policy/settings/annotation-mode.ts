/** Whether the status of a NetworkPolicy is repeated in an annotation of it, or the annotation is removed wherever it is. */
export const ANNOTATION_MODES = ['none', 'write', 'remove'] as const;
/** `none` removes it too, as far as the rights are still there: those of the other modes are to patch NetworkPolicies. */
export type AnnotationMode = (typeof ANNOTATION_MODES)[number];
