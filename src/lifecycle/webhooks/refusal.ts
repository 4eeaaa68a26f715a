import { ApiError } from '../../cluster/index.ts';

/** HTTP status codes that a retry cannot fix: the object is invalid, too large, or not permitted. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 413, 422]);

/** Whether the API server refuses what was written, or its writer. */
export function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && REFUSALS.has(error.code);
}
