import { groupResourceOf } from '../resources/index.ts';
import type { FieldError, ResourceType } from '../resources/index.ts';
import { inertText, inertTexts } from '../values/index.ts';

/** Why a request failed (`metav1.StatusReason`). */
export type ApiErrorReason =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Gone'
  | 'Expired'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'Invalid'
  | 'TooManyRequests'
  | 'InternalError'
  | 'ServiceUnavailable'
  | 'Timeout'
  | 'ServerTimeout'
  | 'Unknown';

/** One cause of a failure (`metav1.StatusCause`). */
interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** `metav1.StatusDetails` */
export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  /** The kind, or the resource, that the failure is about. */
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** The body of an error response (`metav1.Status`). */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: Readonly<Record<string, never>>;
  readonly status: 'Success' | 'Failure';
  readonly message?: string;
  readonly reason?: ApiErrorReason;
  readonly details?: StatusDetails;
  /** HTTP status. */
  readonly code?: number;
}

/** An error response of an API server, from its `Status`. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status. */
  readonly code: number;
  readonly reason: ApiErrorReason;
  readonly details: StatusDetails | undefined;

  constructor(code: number, reason: ApiErrorReason, message: string, details?: StatusDetails, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  /** The error as the body of a response. */
  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      // It quotes what clients sent, and goes to the terminals of others.
      message: inertText(this.message),
      // The API leaves out an unknown reason.
      ...(this.reason === 'Unknown' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: inertTexts(this.details) }),
      code: this.code,
    };
  }

  static notFound(type: Pick<ResourceType, 'group' | 'resource'>, name: string): ApiError {
    return new ApiError(404, 'NotFound', `${groupResourceOf(type)} "${name}" not found`, detailsOf(type, name));
  }

  static alreadyExists(type: Pick<ResourceType, 'group' | 'resource'>, name: string): ApiError {
    const message = `${groupResourceOf(type)} "${name}" already exists`;
    return new ApiError(409, 'AlreadyExists', message, detailsOf(type, name));
  }

  /** Conflict (409): another client changed the object. `why`: `the object has been modified; please apply …`. */
  static conflict(type: Pick<ResourceType, 'group' | 'resource'>, name: string, why: string): ApiError {
    const message = `Operation cannot be fulfilled on ${groupResourceOf(type)} "${name}": ${why}`;
    return new ApiError(409, 'Conflict', message, detailsOf(type, name));
  }

  static invalid(type: Pick<ResourceType, 'group' | 'kind'>, name: string, errors: readonly FieldError[]): ApiError {
    const texts = errors.map(({ field, message }) => `${field}: ${message}`);
    const all = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
    const kind = type.group === '' ? type.kind : `${type.kind}.${type.group}`;
    return new ApiError(422, 'Invalid', `${kind} "${name}" is invalid: ${all}`, {
      ...(name === '' ? {} : { name }),
      ...(type.group === '' ? {} : { group: type.group }),
      ...(type.kind === '' ? {} : { kind: type.kind }),
      causes: errors.map(({ reason, field, message }) => ({ reason, message, field })),
    });
  }

  static badRequest(message: string): ApiError {
    return new ApiError(400, 'BadRequest', message);
  }

  /** Expired (410): the resourceVersion is too old. The client lists again. */
  static expired(message: string): ApiError {
    return new ApiError(410, 'Expired', message);
  }

  static internal(message: string, cause?: unknown): ApiError {
    return new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, undefined, cause);
  }
}

/** Whether a request failed because there is no such object, or no such kind. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}

/** Whether a request was refused because the user lacks a right. */
export function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && error.code === 403;
}

/** The result of a request; undefined when the object does not exist, or another client deleted it first. */
export async function unlessGone<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isNotFound(error)) {
      return undefined;
    }
    throw error;
  }
}

/** The result of a request; undefined when the user lacks a right to it. */
export async function unlessForbidden<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isForbidden(error)) {
      return undefined;
    }
    throw error;
  }
}

function detailsOf(type: Pick<ResourceType, 'group' | 'resource'>, name: string): StatusDetails {
  return { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.resource };
}
