export type { CertificateSpec } from './certificate-requirements.ts';
export { evaluateCertificates } from './evaluate-certificates.ts';
export type { CertificateEvaluation, CompliancyDetails } from './evaluate-certificates.ts';
export type { NamespaceSecrets } from './violations.ts';
