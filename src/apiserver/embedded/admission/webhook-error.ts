import { ApiError } from '../../../cluster/index.ts';
import type { ApiErrorReason } from '../../../cluster/index.ts';
import { isJsonObject, quoteText } from '../../../resources/index.ts';
import type { JsonValue } from '../../../resources/index.ts';

/** A webhook could not be asked, or its answer is none. What becomes of it is for its failure policy to say. */
export class WebhookCallError extends Error {
  override readonly name = 'WebhookCallError';

  constructor(webhook: string, why: string, cause?: unknown) {
    super(`failed calling webhook ${quoteText(webhook)}: ${why}`, cause === undefined ? undefined : { cause });
  }
}

/** An error of the server itself, with its message as the cause too. */
export function internalError(message: string, cause?: unknown): ApiError {
  const details = { causes: [{ message }] };
  return new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, details, cause);
}

export function dryRunUnsupported(webhook: string): ApiError {
  return ApiError.badRequest(`admission webhook ${quoteText(webhook)} does not support dry run`);
}

/** Codes of errors that HTTP has room for. */
const [LOWEST_ERROR_CODE, HIGHEST_ERROR_CODE] = [400, 599];

/** What a webhook said when it refused: its `status` becomes the answer, whatever is in it. */
export function deniedError(webhook: string, status: JsonValue | undefined): ApiError {
  const { code, reason, message, details } = isJsonObject(status) ? status : {};
  const isErrorCode = Number.isInteger(code) && Number(code) >= LOWEST_ERROR_CODE && Number(code) <= HIGHEST_ERROR_CODE;
  const deniedBy = `admission webhook ${quoteText(webhook)} denied the request`;
  const why = [message, reason].find((one) => typeof one === 'string' && one !== '');
  return new ApiError(
    isErrorCode ? Number(code) : LOWEST_ERROR_CODE,
    // Webhooks may have reasons that no API server has.
    (typeof reason === 'string' && reason !== '' ? reason : 'Unknown') as ApiErrorReason,
    typeof why === 'string' ? `${deniedBy}: ${why}` : `${deniedBy} without explanation`,
    isJsonObject(details) ? details : undefined,
  );
}
