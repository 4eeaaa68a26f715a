import { ApiError } from '../cluster/index.ts';

/** The error for a resource that is not served. */
export function notServed(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', {});
}
