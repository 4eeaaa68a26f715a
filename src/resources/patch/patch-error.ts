import { CodedError } from '../../values/index.ts';

/** Why a patch cannot be applied. */
export type PatchErrorCode =
  /** It is not a patch: an API server answers 400. */
  | 'malformed'
  /** It is one, but does not fit the object: 422. */
  | 'does-not-apply'
  /** A `test` did not hold: 422. Nothing is to be changed. */
  | 'test-failed'
  /** More operations than an API server takes: 413. */
  | 'too-large'
  /** What API servers answer with 500: a list element without its key, and the like. */
  | 'failed';

const STATUS: Readonly<Record<PatchErrorCode, number>> = {
  malformed: 400,
  'does-not-apply': 422,
  'test-failed': 422,
  'too-large': 413,
  failed: 500,
};

/** A patch cannot be applied. The message is that of API servers, and says where. */
export class PatchError extends CodedError<PatchErrorCode> {
  override readonly name = 'PatchError';

  /** The HTTP status that an API server answers with. */
  get status(): number {
    return STATUS[this.code];
  }
}

/**
 * The deepest nesting of patches and of what they are applied to. The deepest Kubernetes objects (schemas of schemas in
 * CustomResourceDefinitions) stay below 100; 1,000 frames fit the smallest stack.
 */
export const MAX_PATCH_DEPTH = 1_000;

/** Throws when a recursion over untrusted values goes too deep. */
export function checkDepth(depth: number): void {
  if (depth > MAX_PATCH_DEPTH) {
    throw new PatchError('malformed', `the patch is nested deeper than ${MAX_PATCH_DEPTH} levels`);
  }
}
