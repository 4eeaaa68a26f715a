export { certificateProblem, MAX_CHAIN_CERTIFICATES } from './certificate-key.ts';
export { verifyArtifact } from './verify-artifact.ts';
