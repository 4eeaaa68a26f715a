import { CodedError } from '../../values/index.ts';

/** Why a patch cannot be applied. */
export type PatchErrorCode =
  /** It is not a patch: an API server answers 400. */
  | 'malformed'
  /** The patch does not fit the object: 422. */
  | 'does-not-apply'
  /** A `test` failed: 422. The object stays unchanged. */
  | 'test-failed'
  /** More operations than API servers accept: 413. */
  | 'too-large'
  /** Errors for which API servers answer 500, such as a list element without its key. */
  | 'failed';

const STATUS: Readonly<Record<PatchErrorCode, number>> = {
  malformed: 400,
  'does-not-apply': 422,
  'test-failed': 422,
  'too-large': 413,
  failed: 500,
};

/** A patch that cannot be applied. The message is that of API servers, with the path. */
export class PatchError extends CodedError<PatchErrorCode> {
  override readonly name = 'PatchError';

  /** The HTTP status that an API server answers with. */
  get status(): number {
    return STATUS[this.code];
  }
}

/**
 * Maximum nesting of patches and objects. The deepest Kubernetes objects (schemas in CustomResourceDefinitions) stay
 * below 100; 1,000 frames fit the smallest stack.
 */
export const MAX_PATCH_DEPTH = 1_000;

/** Throws when a recursion over untrusted values is too deep. */
export function checkDepth(depth: number): void {
  if (depth > MAX_PATCH_DEPTH) {
    throw new PatchError('malformed', `the patch is nested deeper than ${MAX_PATCH_DEPTH} levels`);
  }
}
