/** Certificates of control ports, for both sides of a connection. All watched. */
export interface ControlTls {
  /** PEM file: a certificate for `CONTROL_NAME`, for servers and clients. */
  readonly certFile: string;
  readonly keyFile: string;
  /** PEM file of the CA that the other side's certificate must come from. */
  readonly caFile: string;
}
