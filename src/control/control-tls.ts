/** Certificates of a control port or its client. Files are watched. */
export interface ControlTls {
  /** PEM file: a certificate for `CONTROL_NAME`, for server and client authentication. */
  readonly certFile: string;
  readonly keyFile: string;
  /** PEM file: the CA of the other side's certificate. */
  readonly caFile: string;
}
