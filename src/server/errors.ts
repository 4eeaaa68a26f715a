// Every error of the policy server, by code.

/** What went wrong, for programs. */
export type ServerErrorCode =
  /** A port is taken by another process. */
  | 'port-busy'
  /** Certificate, key or client CA cannot be read or do not belong together. */
  | 'tls-invalid'
  /** The policies file cannot be read. */
  | 'policies-unreadable'
  /** A request did not follow the protocol; carries the HTTP status to answer with. */
  | 'request-refused'
  /** More requests wait than the server holds. */
  | 'overloaded'
  /** The server is stopping and takes no more work. */
  | 'stopping'
  /** A thread ended before it answered. */
  | 'thread-ended';

/** An error of the policy server: what happened, and what to do about it. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  readonly code: ServerErrorCode;

  constructor(code: ServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A request that is refused before any policy sees it. */
export class RequestRefused extends ServerError {
  /** The HTTP status to answer with. */
  readonly status: number;

  constructor(status: number, message: string) {
    super('request-refused', message);
    this.status = status;
  }
}
