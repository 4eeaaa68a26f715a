export { createAuthority, issueCertificate } from './certificate-authority.ts';
export type { CertifiedKey } from './certificate-authority.ts';
export { RequestRefused } from './errors.ts';
export { BodyBudget, readBody, sendError, sendJson } from './http-body.ts';
export { createAdmissionServer } from './https-server.ts';
export type { AdmissionServer, ClientTimeouts } from './https-server.ts';
export { hostText, listen } from './listen.ts';
export { tlsOptions, watchTls } from './tls.ts';
export type { TlsFiles } from './tls.ts';
