// Flags of policy servers that verify signatures. Loads nothing of src/modules, which their main thread does not need.

export interface VerificationFlags {
  readonly verificationPath?: string;
  readonly sigstoreTrustConfig?: string;
}

export const VERIFICATION_FLAG = '--verification-path <file>';
export const VERIFICATION_HELP = 'verification.yml: the signatures that modules must have (default: none)';
export const TRUST_FLAG = '--sigstore-trust-config <file>';
export const TRUST_HELP = 'trust root of keyless signatures: ClientTrustConfig or TrustedRoot of Sigstore, as JSON';
