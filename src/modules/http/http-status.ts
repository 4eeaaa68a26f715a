import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';

import { ModuleError, type ModuleErrorCode } from '../errors.ts';

interface StatusMeaning {
  readonly code: ModuleErrorCode;
  readonly advice: string;
}

/**
 * The error for an HTTP status that is not a success.
 * @param shown what was requested, without credentials and query string
 * @param detail what the server says about it, for the message
 */
export function statusError(shown: string, status: number, headers: IncomingHttpHeaders, detail = ''): ModuleError {
  const { code, advice } = meaningOf(status);
  const wait = retryAfterMs(headers);
  const later = wait === undefined ? '' : `. It accepts the next request in ${Math.ceil(wait / 1000)} s`;
  // Not a number that the server made up.
  const standard = Object.hasOwn(STATUS_CODES, status) ? status : 'an unknown status';
  return new ModuleError(code, `${shown} answered ${status}${detail}: expected 200. ${advice}${later}`, {
    tenantMessage: `the source answered ${standard}: expected 200. ${advice}`,
  });
}

/** The delay of a `Retry-After` header, in seconds or as a date. Milliseconds. */
export function retryAfterMs(headers: IncomingHttpHeaders, now = Date.now()): number | undefined {
  const text = headers['retry-after'];
  if (text === undefined) {
    return undefined;
  }
  const at = /^\d{1,9}$/.test(text) ? now + Number(text) * 1000 : Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
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
