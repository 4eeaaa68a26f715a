import { CodedError } from '../../values/index.ts';

/** Why an object cannot be merged, or its fields cannot be tracked. */
export type MergeErrorCode =
  /** The request is invalid for server-side apply: an API server answers 400. */
  | 'request-invalid'
  /** An object does not match the types of its schema; API servers answer 500 with this text. */
  | 'type-mismatch'
  /** The content of `metadata.managedFields` is not a set of fields. */
  | 'fields-malformed';

/** An object that cannot be merged. The message is that of API servers, with the path. */
export class MergeError extends CodedError<MergeErrorCode> {
  override readonly name = 'MergeError';

  /** The HTTP status that an API server answers with. */
  get status(): number {
    return this.code === 'request-invalid' ? 400 : 500;
  }
}

/**
 * Maximum nesting of objects and of sets of fields. The deepest Kubernetes objects (schemas in
 * CustomResourceDefinitions) stay below 100; 500 levels, with several frames each, fit the smallest stack.
 */
export const MAX_MERGE_DEPTH = 500;

/** Throws when a recursion over untrusted values is too deep. */
export function checkMergeDepth(depth: number): void {
  if (depth > MAX_MERGE_DEPTH) {
    throw new MergeError('type-mismatch', `the object is nested deeper than ${MAX_MERGE_DEPTH} levels`);
  }
}
