import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';

import { ModuleError, type ModuleErrorCode } from '../reference/errors.ts';

interface StatusMeaning {
  readonly code: ModuleErrorCode;
  readonly advice: string;
}

interface StatusContext {
  /** What the server says about it, for the message. */
  readonly detail?: string;
  /** Whether the request was part of a push. Default: no. */
  readonly isPush?: boolean;
}

/**
 * The error for an HTTP status that is not a success.
 * @param shown what was requested, without credentials and query string
 */
export function statusError(
  shown: string,
  status: number,
  headers: IncomingHttpHeaders,
  { detail = '', isPush = false }: StatusContext = {},
): ModuleError {
  const { code, advice } = (isPush ? pushMeaningOf(status) : undefined) ?? meaningOf(status);
  const expected = isPush ? 'that it accepts the push' : '200';
  const wait = retryAfterMs(headers);
  const later = wait === undefined ? '' : `. It accepts the next request in ${Math.ceil(wait / 1000)} s`;
  // Not a number that the server made up.
  const standard = Object.hasOwn(STATUS_CODES, status) ? status : 'an unknown status';
  return new ModuleError(code, `${shown} answered ${status}${detail}: expected ${expected}. ${advice}${later}`, {
    tenantMessage: `the source answered ${standard}: expected 200. ${advice}`,
  });
}

/** The delay of a `Retry-After` header, in seconds or as a date. Milliseconds. */
export function retryAfterMs(headers: IncomingHttpHeaders): number | undefined {
  const text = headers['retry-after'];
  if (text === undefined) {
    return undefined;
  }
  const now = Date.now();
  const at = /^\d{1,9}$/.test(text) ? now + Number(text) * 1000 : Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** What a status means for a push, if that differs from a download. */
function pushMeaningOf(status: number): StatusMeaning | undefined {
  switch (status) {
    case 403:
      return {
        code: 'source-access-denied',
        advice: 'The credentials may not push to this repository: check their permissions',
      };
    case 404:
      return {
        code: 'source-not-found',
        advice: 'There is no such repository, or the credentials may not see it: check the spelling, or create it',
      };
    case 405:
      return { code: 'source-status', advice: 'The registry accepts no pushes: is it a mirror, or read-only?' };
    case 413:
      return {
        code: 'module-too-large',
        advice: 'The registry, or a proxy in front of it, limits the size of uploads: raise that limit',
      };
    default:
      return undefined;
  }
}

function meaningOf(status: number): StatusMeaning {
  switch (status) {
    case 401:
      return { code: 'source-unauthorized', advice: 'The server needs credentials, or those that it got are wrong' };
    case 403:
      return {
        code: 'source-access-denied',
        advice: 'The credentials may not read the module: check their permissions',
      };
    case 404:
    case 410:
      return { code: 'source-not-found', advice: 'There is no such module: check the spelling and the version' };
    case 429:
      return {
        code: 'source-rate-limited',
        advice: 'The server limits the rate of requests: wait, or mirror the module',
      };
    default:
      return status >= 500
        ? { code: 'source-failed', advice: 'The server failed: try again later, or look at its logs' }
        : { code: 'source-status', advice: 'Check the URL' };
  }
}
