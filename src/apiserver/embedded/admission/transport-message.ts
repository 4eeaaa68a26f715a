// Describes transport errors with the messages of Go's net, tls and x509 packages, as API servers do.
import { isIP } from 'node:net';
import type { PeerCertificate } from 'node:tls';

/** Codes of OpenSSL for certificates that no trusted CA has signed. */
const UNKNOWN_AUTHORITY: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'INVALID_CA',
]);

const CERTIFICATE = 'tls: failed to verify certificate: x509: ';

/** The destination of a connection. */
export interface Destination {
  readonly host: string;
  readonly port: number;
  /** The name that the certificate must be valid for. */
  readonly serverName: string;
}

/** Go's message for an error of Node.js; the error's own message if there is no counterpart. */
export function transportMessage(error: unknown, { host, port, serverName }: Destination): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const place = isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
  if (UNKNOWN_AUTHORITY.has(code)) {
    return `${CERTIFICATE}certificate signed by unknown authority`;
  }
  switch (code) {
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return `${CERTIFICATE}certificate has expired or is not yet valid`;
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return CERTIFICATE + wrongName(error, serverName);
    case 'ECONNREFUSED':
      return `dial tcp ${place}: connect: connection refused`;
    case 'EHOSTUNREACH':
      return `dial tcp ${place}: connect: no route to host`;
    case 'ENETUNREACH':
      return `dial tcp ${place}: connect: network is unreachable`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `dial tcp: lookup ${host}: no such host`;
    case 'ECONNRESET':
    case 'EPIPE':
      return 'EOF';
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return 'http: server gave HTTP response to HTTPS client';
    default:
      return error.message;
  }
}

function wrongName(error: Error, serverName: string): string {
  const certificate = 'cert' in error ? (error.cert as PeerCertificate) : undefined;
  const names = (certificate?.subjectaltname ?? '').split(', ').filter((one) => one !== '');
  if (isIP(serverName) !== 0) {
    const addresses = withPrefix(names, 'IP Address:');
    return addresses.length === 0
      ? `cannot validate certificate for ${serverName} because it doesn't contain any IP SANs`
      : `certificate is valid for ${addresses.join(', ')}, not ${serverName}`;
  }
  const hosts = withPrefix(names, 'DNS:');
  return hosts.length === 0
    ? `certificate is not valid for any names, but wanted to match ${serverName}`
    : `certificate is valid for ${hosts.join(', ')}, not ${serverName}`;
}

function withPrefix(names: readonly string[], prefix: string): readonly string[] {
  return names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
}
