/** What happens with the annotation: nothing, it is written, or it is removed wherever it is. */
export const ANNOTATION_MODES = ['none', 'write', 'remove'] as const;
export type AnnotationMode = (typeof ANNOTATION_MODES)[number];

/** Where the status of a NetworkPolicy is repeated in the NetworkPolicy itself. */
export interface ProjectionOptions {
  /** Default: `none`. The other modes need the right to patch NetworkPolicies. */
  readonly annotation?: AnnotationMode;
  /** Whether NetworkPolicy has the status of KEP-2943, which only an embedded cluster has. Default: false. */
  readonly subresource?: boolean;
}
