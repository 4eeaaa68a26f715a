import { quote } from '../../../go/index.ts';
import { ApiError } from '../../../cluster/index.ts';
import type { ApiErrorReason } from '../../../cluster/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import type { JsonValue } from '../../../resources/index.ts';

/** A failed call of a webhook, or a malformed response. The failurePolicy decides whether the request is rejected. */
export class WebhookCallError extends Error {
  override readonly name = 'WebhookCallError';

  constructor(webhook: string, why: string, cause?: unknown) {
    super(`failed calling webhook ${quote(webhook)}: ${why}`, cause === undefined ? undefined : { cause });
  }
}

/** An internal error (500), which has its message as a cause, too. */
export function internalError(message: string, cause?: unknown): ApiError {
  const details = { causes: [{ message }] };
  return new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, details, cause);
}

export function dryRunUnsupported(webhook: string): ApiError {
  return ApiError.badRequest(`admission webhook ${quote(webhook)} does not support dry run`);
}

/** The range of HTTP error codes. */
const [LOWEST_ERROR_CODE, HIGHEST_ERROR_CODE] = [400, 599];

/** The error for a denial, with the code, reason, message and details of the webhook's `status`. */
export function deniedError(webhook: string, status: JsonValue | undefined): ApiError {
  const { code, reason, message, details } = isJsonObject(status) ? status : {};
  const isErrorCode = Number.isInteger(code) && Number(code) >= LOWEST_ERROR_CODE && Number(code) <= HIGHEST_ERROR_CODE;
  const deniedBy = `admission webhook ${quote(webhook)} denied the request`;
  const why = [message, reason].find((one) => typeof one === 'string' && one !== '');
  return new ApiError(
    isErrorCode ? Number(code) : LOWEST_ERROR_CODE,
    // Webhooks may return reasons that API servers do not use.
    (typeof reason === 'string' && reason !== '' ? reason : 'Unknown') as ApiErrorReason,
    typeof why === 'string' ? `${deniedBy}: ${why}` : `${deniedBy} without explanation`,
    isJsonObject(details) ? details : undefined,
  );
}
