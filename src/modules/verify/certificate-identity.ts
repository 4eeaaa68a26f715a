// Keyless signatures: a certificate authority certifies that the holder of a short-lived key was authenticated by an OIDC issuer,
// and a log, or a timestamp authority, that the signature was made while the certificate was valid.
import { X509Certificate } from 'node:crypto';

import { bundleFromJSON } from '@sigstore/bundle';
import { dsse, X509Certificate as CertificateReader } from '@sigstore/core';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { toSignedEntity, toTrustMaterial, type TrustMaterial, Verifier } from '@sigstore/verify';

import { errorText, shortened } from '../../values/index.ts';
import { ModuleError } from '../reference/errors.ts';
import type { TrustRoot } from '../sources/trust-root.ts';
import type { Signature } from './signature.ts';

/** Who signed, by the certificate. */
export interface CertificateIdentity {
  /** The OIDC issuer. */
  readonly issuer: string;
  /** The only subject alternative name: a URL or an e-mail address. */
  readonly subject: string;
}

const ISSUER_OID = '1.3.6.1.4.1.57264.1.8';
/** The same in certificates of before 2023, as plain text. */
const OLD_ISSUER_OID = '1.3.6.1.4.1.57264.1.1';
/** The extension with the subject alternative names. */
const SUBJECT_OID = '2.5.29.17';
export const CODE_SIGNING_OID = '1.3.6.1.5.5.7.3.3';
/** Tags of a GeneralName (RFC 5280, section 4.2.1.6). */
const EMAIL_TAG = 1;
const URL_TAG = 6;

type Bundle = ReturnType<typeof bundleFromJSON>;

/** Verifies keyless signatures with a trust root. */
export class KeylessVerifier {
  readonly #verifier: Verifier;

  /** @throws ModuleError `trust-root-invalid` */
  constructor(trustRoot: TrustRoot) {
    const material = trustMaterial(trustRoot);
    // Logs that the trust root does not name cannot be required. Without any time, nothing is trusted.
    this.#verifier = new Verifier(material, {
      ctlogThreshold: material.ctlogs.length === 0 ? 0 : 1,
      tlogThreshold: material.tlogs.length === 0 ? 0 : 1,
      timestampThreshold: 1,
    });
  }

  /** The identity of the signer, or why the signature is not trusted. */
  identityOf(signature: Signature): CertificateIdentity | string {
    if (signature.bundle === undefined) {
      return 'has no certificate';
    }
    try {
      const bundle = bundleFromJSON(signature.bundle);
      requireSameContent(bundle, signature);
      this.#verifier.verify(toSignedEntity(bundle, Buffer.from(signature.signedBytes)));
      return certifiedIdentity(certificateOf(bundle));
    } catch (error) {
      return `is not trusted: ${shortened(reasonOf(error), 200)}`;
    }
  }
}

function trustMaterial({ trustedRoot }: TrustRoot): TrustMaterial {
  try {
    return toTrustMaterial(TrustedRoot.fromJSON({ ctlogs: [], tlogs: [], timestampAuthorities: [], ...trustedRoot }));
  } catch (error) {
    throw new ModuleError('trust-root-invalid', `the trust root cannot be used: ${errorText(error)}`, { cause: error });
  }
}

/** What the libraries verify must be what was compared with the artifact. */
export function requireSameContent({ content }: Bundle, { signedBytes, signature }: Signature): void {
  const isSame =
    content.$case === 'dsseEnvelope'
      ? dsse.preAuthEncoding(content.dsseEnvelope.payloadType, content.dsseEnvelope.payload).equals(signedBytes) &&
        content.dsseEnvelope.signatures.length === 1 &&
        content.dsseEnvelope.signatures[0]?.sig.equals(signature) === true
      : content.messageSignature.signature.equals(signature);
  if (!isSame) {
    throw new TypeError('the bundle is ambiguous');
  }
}

function certificateOf({ verificationMaterial: { content } }: Bundle): Buffer<ArrayBuffer> {
  if (content.$case === 'publicKey') {
    throw new TypeError('the bundle has no certificate');
  }
  const [leaf] = content.$case === 'certificate' ? [content.certificate] : content.x509CertificateChain.certificates;
  return Buffer.from(leaf?.rawBytes ?? []);
}

/** The identity in a certificate that is trusted. */
function certifiedIdentity(der: Buffer<ArrayBuffer>): CertificateIdentity {
  if (!(new X509Certificate(der).keyUsage ?? []).includes(CODE_SIGNING_OID)) {
    throw new TypeError('the certificate is not for code signing');
  }
  const certificate = CertificateReader.parse(der);
  const names = certificate.extension(SUBJECT_OID)?.valueObj.subs[0]?.subs ?? [];
  const [name] = names;
  const isKnown = name !== undefined && [URL_TAG, EMAIL_TAG].some((tag) => name.tag.isContextSpecific(tag));
  if (!isKnown || names.length !== 1) {
    throw new TypeError('the certificate does not have exactly one URL or e-mail address as its subject');
  }
  const issuer =
    certificate.extension(ISSUER_OID)?.valueObj.subs[0]?.value ?? certificate.extension(OLD_ISSUER_OID)?.value;
  return { issuer: plainText(issuer, 'issuer'), subject: plainText(name.value, 'subject') };
}

/** Printable ASCII only: other characters may look like, or be read as, other text. */
function plainText(bytes: Uint8Array | undefined, what: string): string {
  const text = Buffer.from(bytes ?? []).toString('latin1');
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new TypeError(`the certificate has no ${what}, or one that is not plain text`);
  }
  return text;
}

/** The innermost reason of an error of the libraries. */
function reasonOf(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? reasonOf(error.cause) : errorText(error);
}
