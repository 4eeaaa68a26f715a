import { ClusterError } from '../errors.ts';
import { errorText } from '../../values/index.ts';

/** TLS errors for certificates that are not trusted, with advice. */
const TRUST_CODES = new Map<string, string>([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is not signed by a certificate authority that is trusted'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'its certificate is not signed by a certificate authority that is trusted'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'its certificate is not signed by a certificate authority that is trusted'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'its certificate is not signed by a certificate authority that is trusted'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'its certificate is not signed by a certificate authority that is trusted'],
  ['CERT_SIGNATURE_FAILURE', 'its certificate is not signed by the certificate authority that is trusted'],
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['CERT_NOT_YET_VALID', 'its certificate is not valid yet: compare the clocks'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for other names'],
]);

function codeOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') {
    return error.code;
  }
  return '';
}

/** Whether the connection was lost before a response, so that a read can be sent again. */
export function isConnectionReset(error: unknown): boolean {
  const cause = error instanceof ClusterError ? error.cause : error;
  return ['ECONNRESET', 'EPIPE', 'ECONNABORTED'].includes(codeOf(cause));
}

/** The error for a failed connection. */
export function transportError(error: unknown, server: string, origin: string | undefined): ClusterError {
  if (error instanceof ClusterError) {
    return error;
  }
  const code = codeOf(error);
  const message = errorText(error);
  const where = origin === undefined ? server : `${server} (${origin})`;
  const trust = TRUST_CODES.get(code);
  const text =
    trust === undefined
      ? `cannot reach the cluster at ${where}: ${whatHappened(code, message)}`
      : `the cluster at ${where} cannot be trusted: ${trust} (${message}); expected one that certificate-authority-data of the kubeconfig vouches for`;
  return new ClusterError('unreachable', text, { cause: error });
}

function whatHappened(code: string, message: string): string {
  switch (code) {
    case 'ECONNREFUSED':
      return 'nothing listens there; is the cluster running, and is the address right?';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host name has no address (${message}); is it right, and does DNS work?`;
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ECONNABORTED':
      return 'the connection was closed before an answer came';
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return `it does not speak TLS (${message}); is it http:// instead of https://?`;
    case 'HPE_INVALID_CONSTANT':
    case 'HPE_INVALID_VERSION':
      return `it does not speak HTTP (${message}); is it https:// instead of http://?`;
    default:
      return message;
  }
}
