// An entry of its own for who makes certificates and has no control port.
export { ensureLocalCertificates, localCertificates } from './local-certificates.ts';
export type { LocalCertificates } from './local-certificates.ts';
