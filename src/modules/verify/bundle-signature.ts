// Signatures as bundles of Sigstore (https://docs.sigstore.dev/about/bundle/), as cosign 3 attaches them: an in-toto statement about
// the artifact's digest, or a signature of the manifest itself.
import { dsse } from '@sigstore/core';

import { isJsonObject, isNestedDeeper, type JsonObject, own, parseJson, textOf, valueAt } from '../../values/index.ts';
import type { Digest } from '../reference/digest.ts';
import { fromBase64, type Signature } from './signature.ts';

/** The media types of bundles, without version and suffix. */
export const BUNDLE_MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle';
/** The predicate type of signatures. Other statements, such as scans or provenance, are no approval. */
export const SIGN_PREDICATE_TYPE = 'https://sigstore.dev/cosign/sign/v1';

const STATEMENT_PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const STATEMENT_TYPES: ReadonlySet<string> = new Set([
  'https://in-toto.io/Statement/v0.1',
  'https://in-toto.io/Statement/v1',
]);
/** Largest claim: a signature's has some hundred bytes. */
const MAX_CLAIM_BYTES = 128 * 1024;
/** Most subjects of a statement. */
const MAX_SUBJECTS = 100;
/** Most log entries, and most timestamps, of a bundle: each is verified. */
const MAX_EVIDENCE = 4;
/** Longest text in the evidence: certificates and log entries in base64 have up to 10 KiB. */
const MAX_EVIDENCE_LENGTH = 24 * 1024;
/** Most open brackets: a bundle has six. */
const MAX_DEPTH = 32;
/** Most hashes of an inclusion proof: that of a log with 2^64 entries. */
const MAX_PROOF_HASHES = 64;

/** The artifact that signatures are about. */
export interface SignedArtifact {
  readonly digest: Digest;
  /** Its manifest. */
  manifest(): Promise<Uint8Array>;
}

/**
 * Reads a bundle.
 * @param shown the signature, for messages
 * @returns the signature, or what is wrong with it
 */
export async function bundleSignature(
  text: string,
  shown: string,
  artifact: SignedArtifact,
): Promise<Signature | string> {
  const bundle = parseObject(text);
  const material = bundle === undefined ? undefined : objectAt(bundle, 'verificationMaterial');
  if (bundle === undefined || material === undefined || !hasBoundedEvidence(material)) {
    return 'is not a bundle of Sigstore';
  }
  const hasCertificate = ['certificate', 'x509CertificateChain'].some((name) => own(material, name) !== undefined);
  const common = { shown, bundle: hasCertificate ? bundle : undefined };
  const envelope = objectAt(bundle, 'dsseEnvelope');
  if (own(bundle, 'dsseEnvelope') !== undefined && own(bundle, 'messageSignature') !== undefined) {
    return 'is a bundle with two kinds of signatures';
  }
  if (envelope !== undefined) {
    const content = statementContent(envelope, artifact.digest);
    return typeof content === 'string' ? content : { ...common, ...content };
  }
  const message = objectAt(bundle, 'messageSignature');
  const signature = fromBase64(message === undefined ? undefined : own(message, 'signature'));
  if (message === undefined || signature === undefined) {
    return 'is a bundle without a signature';
  }
  const digest = objectAt(message, 'messageDigest') ?? {};
  const hex = fromBase64(own(digest, 'digest'))?.toString('hex');
  if (own(digest, 'algorithm') !== 'SHA2_256' || `sha256:${hex}` !== artifact.digest) {
    return 'is for another artifact';
  }
  return { ...common, signedBytes: await artifact.manifest(), signature, annotations: new Map() };
}

/** The signature of an in-toto statement, or what is wrong with it. */
function statementContent(
  envelope: JsonObject,
  digest: Digest,
): Pick<Signature, 'signedBytes' | 'signature' | 'annotations'> | string {
  const payload = fromBase64(own(envelope, 'payload'), MAX_CLAIM_BYTES);
  const signatures = own(envelope, 'signatures');
  const [first, ...more] = Array.isArray(signatures) ? signatures : [];
  const signature = fromBase64(valueAt(first, 'sig'));
  const payloadType = own(envelope, 'payloadType');
  if (payload === undefined || signature === undefined || more.length > 0) {
    return 'is a bundle without exactly one signature';
  }
  const statement = payloadType === STATEMENT_PAYLOAD_TYPE ? parseObject(payload.toString('utf8')) : undefined;
  if (statement === undefined || !STATEMENT_TYPES.has(textOf(own(statement, '_type')))) {
    return 'does not sign an in-toto statement';
  }
  if (own(statement, 'predicateType') !== SIGN_PREDICATE_TYPE) {
    return `is not a signature but another statement: expected the predicate type ${SIGN_PREDICATE_TYPE}`;
  }
  const subjects = own(statement, 'subject');
  const subject = (Array.isArray(subjects) ? subjects.slice(0, MAX_SUBJECTS) : [])
    .filter(isJsonObject)
    .find((candidate) => `sha256:${textOf(own(objectAt(candidate, 'digest') ?? {}, 'sha256'))}` === digest);
  if (subject === undefined) {
    return 'is for another artifact';
  }
  return {
    signedBytes: dsse.preAuthEncoding(STATEMENT_PAYLOAD_TYPE, payload),
    signature,
    annotations: textsByName(objectAt(subject, 'annotations')),
  };
}

/** The fields of an object that are texts. */
export function textsByName(object: JsonObject | undefined): ReadonlyMap<string, string> {
  const entries = Object.entries(object ?? {});
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

/** The object in a JSON text; undefined for any other text. */
export function parseObject(text: string): JsonObject | undefined {
  if (isNestedDeeper(text, MAX_DEPTH)) {
    return undefined;
  }
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A field that is an object; undefined otherwise. */
export function objectAt(object: JsonObject, field: string): JsonObject | undefined {
  const value = own(object, field);
  return isJsonObject(value) ? value : undefined;
}

/** Whether a bundle has no more to verify than a real one has. */
function hasBoundedEvidence(material: JsonObject): boolean {
  const timestamps = own(objectAt(material, 'timestampVerificationData') ?? {}, 'rfc3161Timestamps');
  const entries = own(material, 'tlogEntries');
  return (
    isShort(timestamps, MAX_EVIDENCE) &&
    isShort(entries, MAX_EVIDENCE) &&
    hasShortTexts(material) &&
    (Array.isArray(entries) ? entries : []).every(
      (entry) =>
        isJsonObject(entry) && isShort(own(objectAt(entry, 'inclusionProof') ?? {}, 'hashes'), MAX_PROOF_HASHES),
    )
  );
}

function hasShortTexts(value: unknown): boolean {
  return typeof value === 'object' && value !== null
    ? Object.values(value).every(hasShortTexts)
    : typeof value !== 'string' || value.length <= MAX_EVIDENCE_LENGTH;
}

function isShort(list: unknown, max: number): boolean {
  return list === undefined || list === null || (Array.isArray(list) && list.length <= max);
}
