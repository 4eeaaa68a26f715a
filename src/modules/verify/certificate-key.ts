// Signatures with the key of a certificate that a policy names, of any certificate authority.
import { X509Certificate } from 'node:crypto';

import { bundleFromJSON } from '@sigstore/bundle';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify';

import type { TrustRoot } from '../sources/trust-root.ts';
import { type CertificateRequirement, parsePublicKey } from '../sources/verification-config.ts';
import { objectAt } from './bundle-signature.ts';
import { CODE_SIGNING_OID, requireSameContent } from './certificate-identity.ts';
import { isSignedBy } from './public-key.ts';
import type { Signature } from './signature.ts';

/** Most certificates of a chain: public chains have 2 to 4. */
export const MAX_CHAIN_CERTIFICATES = 16;

/**
 * Whether a signature is one of the holder of a certificate, made while the certificate was valid: by the time of a log entry that
 * the trust root vouches for, or else now.
 */
export function isSignedByCertificate(
  { certificate: pem, isLogRequired }: CertificateRequirement,
  signature: Signature,
  trustRoot: TrustRoot | undefined,
): boolean {
  const certificate = new X509Certificate(pem);
  const key = parsePublicKey(certificate.publicKey.export({ type: 'spki', format: 'pem' }).toString());
  if (key === undefined || !isSignedBy(key, signature)) {
    return false;
  }
  return (
    (trustRoot !== undefined && isLogged(certificate, signature, trustRoot)) ||
    (!isLogRequired && isValidAt(certificate, new Date()))
  );
}

/**
 * What is wrong with a certificate that signatures are to be verified with; undefined if nothing is.
 * @param chain certificates of authorities that lead to a root, which is one of them. Undefined: the certificate itself is trusted
 */
export function certificateProblem(pem: string, chain: readonly string[] | undefined): string | undefined {
  const certificate = parseCertificate(pem);
  if (certificate === undefined) {
    return 'certificate: expected a certificate in PEM';
  }
  const key = certificate.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  if (parsePublicKey(key) === undefined) {
    return 'certificate: expected a key that signs artifacts: ECDSA P-256, P-384 or P-521, Ed25519, or RSA from 2048 bits';
  }
  if (certificate.ca || !(certificate.keyUsage ?? []).includes(CODE_SIGNING_OID)) {
    return 'certificate: expected one for code signing, not of an authority';
  }
  if (chain === undefined) {
    return undefined;
  }
  const authorities = chain.map(parseCertificate).filter((one) => one !== undefined);
  if (authorities.length !== chain.length || chain.length > MAX_CHAIN_CERTIFICATES) {
    return `certificate_chain: expected at most ${MAX_CHAIN_CERTIFICATES} certificates in PEM`;
  }
  return leadsToRoot(certificate, authorities)
    ? undefined
    : 'certificate: it does not lead to a root in certificate_chain';
}

function parseCertificate(pem: string): X509Certificate | undefined {
  // The constructor also reads DER.
  if (!/^\s*-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*$/.test(pem)) {
    return undefined;
  }
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** Whether authorities that were valid when the certificate was issued lead from it to a root. */
function leadsToRoot(certificate: X509Certificate, authorities: readonly X509Certificate[]): boolean {
  let current = certificate;
  for (let steps = 0; steps < authorities.length; steps++) {
    const issuer = authorities.find(
      (one) => one.ca && isIssuedBy(current, one) && isValidAt(one, certificate.validFromDate),
    );
    if (issuer === undefined) {
      return false;
    }
    if (isIssuedBy(issuer, issuer)) {
      return true;
    }
    current = issuer;
  }
  return false;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  // checkIssued compares names and key identifiers; only verify checks the signature.
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function isValidAt({ validFromDate, validToDate }: X509Certificate, time: Date): boolean {
  return time >= validFromDate && time <= validToDate;
}

/** Whether a log of the trust root has an entry of the signature, from the time in which the certificate is valid. */
function isLogged(certificate: X509Certificate, signature: Signature, { trustedRoot }: TrustRoot): boolean {
  const material = signature.bundle === undefined ? undefined : objectAt(signature.bundle, 'verificationMaterial');
  if (material === undefined) {
    return false;
  }
  const { tlogEntries = [], timestampVerificationData = {} } = material;
  // The libraries must use the key of the certificate that the policy names, not that of the one in the bundle.
  const verificationMaterial = { publicKey: { hint: 'certificate' }, tlogEntries, timestampVerificationData };
  try {
    const bundle = bundleFromJSON({ ...signature.bundle, verificationMaterial });
    requireSameContent(bundle, signature);
    const root = TrustedRoot.fromJSON({ ctlogs: [], tlogs: [], timestampAuthorities: [], ...trustedRoot });
    const trust = toTrustMaterial(root, () => ({
      publicKey: certificate.publicKey,
      validFor: (time) => isValidAt(certificate, time),
    }));
    const verifier = new Verifier(trust, { ctlogThreshold: 0, tlogThreshold: 1, timestampThreshold: 1 });
    verifier.verify(toSignedEntity(bundle, Buffer.from(signature.signedBytes)));
    return true;
  } catch {
    return false;
  }
}
