// Every error of listening and of requests that break the protocol, by code.
import { CodedError } from '../values/index.ts';

/** What went wrong, for programs. */
export type HttpsErrorCode =
  /** A port is taken by another process. */
  | 'port-busy'
  /** Certificate, key or client CA cannot be read or do not belong together. */
  | 'tls-invalid'
  /** A request did not follow the protocol; carries the HTTP status to answer with. */
  | 'request-refused';

/** An error of a server: what happened, and what to do about it. */
export class HttpsError extends CodedError<HttpsErrorCode> {
  override readonly name = 'HttpsError';
}

/** A request that is refused before any policy sees it. */
export class RequestRefused extends HttpsError {
  /** The HTTP status to answer with. */
  readonly status: number;

  constructor(status: number, message: string) {
    super('request-refused', message);
    this.status = status;
  }
}
