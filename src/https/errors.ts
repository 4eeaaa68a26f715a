// Errors of listening and of invalid requests, by code.
import { CodedError } from '../values/index.ts';

/** The kind of error, for programs. */
export type HttpsErrorCode =
  /** A port is taken by another process. */
  | 'port-busy'
  /** Certificate, key or client CA cannot be read or do not belong together. */
  | 'tls-invalid'
  /** A request violates the protocol; has the HTTP status of the answer. */
  | 'request-refused';

/** An error of a server: what happened, and what to do. */
export class HttpsError extends CodedError<HttpsErrorCode> {
  override readonly name = 'HttpsError';
}

/** A request that is refused before any evaluation. */
export class RequestRefusal extends HttpsError {
  /** The HTTP status to answer with. */
  readonly status: number;

  constructor(status: number, message: string) {
    super('request-refused', message);
    this.status = status;
  }
}
