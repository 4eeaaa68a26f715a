export { verifyArtifact } from './verify-artifact.ts';
