// Signatures in the layout of cosign before version 3: layers with a claim, whose annotations have the signature, the
// certificate and the log entry (https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md). They are rebuilt as bundles.
import { isJsonObject, type JsonObject, own, textOf } from '../../values/index.ts';
import { createHash } from 'node:crypto';
import type { Digest } from '../reference/digest.ts';
import type { Descriptor } from '../oci/manifest.ts';
import { objectAt, parseObject, textsByName } from './bundle-signature.ts';
import { fromBase64, type Signature } from './signature.ts';

export const LAYER_MEDIA_TYPE = 'application/vnd.dev.cosign.simplesigning.v1+json';

const CLAIM_TYPE = 'cosign container image signature';
const SIGNATURE_ANNOTATION = 'dev.cosignproject.cosign/signature';
const CERTIFICATE_ANNOTATION = 'dev.sigstore.cosign/certificate';
const LOG_ENTRY_ANNOTATION = 'dev.sigstore.cosign/bundle';
const TIMESTAMP_ANNOTATION = 'dev.sigstore.cosign/rfc3161timestamp';

/** The first version of bundles: the only one whose log entries may have a promise of inclusion without a proof. */
const BUNDLE_V01 = 'application/vnd.dev.sigstore.bundle+json;version=0.1';
/** Longest annotation that is read: a certificate or log entry. */
const MAX_ANNOTATION_LENGTH = 64 * 1024;
/** Largest log entry: it contains the certificate. Bytes. */
const MAX_LOG_ENTRY_BYTES = 32 * 1024;

/**
 * Reads a layer with a signature.
 * @param claim the content of the layer
 * @param shown the signature, for messages
 * @returns the signature, or what is wrong with it
 */
export function layerSignature(
  layer: Descriptor,
  claim: Uint8Array,
  shown: string,
  digest: Digest,
): Signature | string {
  const annotation = (name: string): string | undefined => layer.annotations.get(name);
  if ([...layer.annotations.values()].some(({ length }) => length > MAX_ANNOTATION_LENGTH)) {
    return 'has an annotation that is too long';
  }
  const signature = fromBase64(annotation(SIGNATURE_ANNOTATION));
  if (signature === undefined) {
    return `has no annotation ${SIGNATURE_ANNOTATION} with a signature`;
  }
  const content = parseObject(Buffer.from(claim).toString('utf8'));
  const critical = objectAt(content ?? {}, 'critical') ?? {};
  if (content === undefined || own(critical, 'type') !== CLAIM_TYPE) {
    return 'does not sign a claim of cosign';
  }
  if (own(objectAt(critical, 'image') ?? {}, 'docker-manifest-digest') !== digest) {
    return 'is for another artifact';
  }
  const common = {
    shown,
    signedBytes: claim,
    signature,
    annotations: textsByName(objectAt(content, 'optional')),
  };
  const certificate = annotation(CERTIFICATE_ANNOTATION);
  if (certificate === undefined) {
    return { ...common, bundle: undefined };
  }
  const bundle = rebuiltBundle(certificate, annotation, claim, signature);
  return typeof bundle === 'string' ? bundle : { ...common, bundle };
}

/** The bundle with the same content as the annotations, or what is wrong with them. */
function rebuiltBundle(
  certificate: string,
  annotation: (name: string) => string | undefined,
  claim: Uint8Array,
  signature: Buffer,
): JsonObject | string {
  const pem = /^\s*-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/.exec(certificate)?.[1];
  const rawBytes = fromBase64(pem?.replace(/\s+/g, ''));
  if (rawBytes === undefined) {
    return 'has a malformed certificate';
  }
  const written = annotation(LOG_ENTRY_ANNOTATION);
  const entry = written === undefined ? [] : [logEntry(written)];
  const stamped = annotation(TIMESTAMP_ANNOTATION);
  const timestamp = stamped === undefined ? [] : [timestampOf(stamped)];
  if (entry.includes(undefined) || timestamp.includes(undefined)) {
    return `has a malformed ${entry.includes(undefined) ? 'log entry' : 'timestamp'}`;
  }
  return {
    mediaType: BUNDLE_V01,
    verificationMaterial: {
      x509CertificateChain: { certificates: [{ rawBytes: rawBytes.toString('base64') }] },
      tlogEntries: entry.filter(isJsonObject),
      timestampVerificationData: { rfc3161Timestamps: timestamp.filter(isJsonObject) },
    },
    messageSignature: {
      messageDigest: { algorithm: 'SHA2_256', digest: createHash('sha256').update(claim).digest('base64') },
      signature: signature.toString('base64'),
    },
  };
}

/** The entry of a transparency log, as in bundles; undefined if it is malformed. */
function logEntry(text: string): JsonObject | undefined {
  const entry = parseObject(text) ?? {};
  const payload = objectAt(entry, 'Payload') ?? {};
  const promise = fromBase64(own(entry, 'SignedEntryTimestamp'));
  const body = fromBase64(own(payload, 'body'), MAX_LOG_ENTRY_BYTES);
  const [time, index] = [own(payload, 'integratedTime'), own(payload, 'logIndex')];
  const logId = textOf(own(payload, 'logID'));
  if (
    promise === undefined ||
    body === undefined ||
    !/^[0-9a-f]{64}$/.test(logId) ||
    !isCount(time) ||
    !isCount(index)
  ) {
    return undefined;
  }
  const { kind, apiVersion } = parseObject(body.toString('utf8')) ?? {};
  return {
    logIndex: `${index}`,
    logId: { keyId: Buffer.from(logId, 'hex').toString('base64') },
    kindVersion: { kind: textOf(kind), version: textOf(apiVersion) },
    integratedTime: `${time}`,
    inclusionPromise: { signedEntryTimestamp: promise.toString('base64') },
    canonicalizedBody: body.toString('base64'),
  };
}

function timestampOf(text: string): JsonObject | undefined {
  const signed = fromBase64(own(parseObject(text) ?? {}, 'SignedRFC3161Timestamp'));
  return signed === undefined ? undefined : { signedTimestamp: signed.toString('base64') };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
