import { CodedError } from '../../values/index.ts';

/** Why an object cannot be merged, or its fields not tracked. */
export type MergeErrorCode =
  /** The request is not what server-side apply takes: an API server answers 400. */
  | 'request-invalid'
  /** An object does not have the types of its schema; API servers answer 500 with this text. */
  | 'type-mismatch'
  /** What stands in `metadata.managedFields` is not a set of fields. */
  | 'fields-malformed';

/** An object that cannot be merged. The message is that of API servers, and says where. */
export class MergeError extends CodedError<MergeErrorCode> {
  override readonly name = 'MergeError';

  /** The HTTP status that an API server answers with. */
  get status(): number {
    return this.code === 'request-invalid' ? 400 : 500;
  }
}

/**
 * The deepest nesting of objects and of sets of fields. The deepest Kubernetes objects (schemas of schemas in
 * CustomResourceDefinitions) stay below 100; 500 levels of the walks here, some frames each, fit the smallest stack.
 */
export const MAX_MERGE_DEPTH = 500;

/** Throws when a recursion over untrusted values goes too deep. */
export function checkMergeDepth(depth: number): void {
  if (depth > MAX_MERGE_DEPTH) {
    throw new MergeError('type-mismatch', `the object is nested deeper than ${MAX_MERGE_DEPTH} levels`);
  }
}
