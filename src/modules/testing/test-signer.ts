// Signs artifacts of a test registry as cosign does: in its older layout, and with bundles.
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

import type { TestRegistry } from './test-registry.ts';

export const BUNDLE_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json';
export const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';
const LAYER_TYPE = 'application/vnd.dev.cosign.simplesigning.v1+json';
const SIGN_PREDICATE = 'https://sigstore.dev/cosign/sign/v1';
const STATEMENT_TYPE = 'application/vnd.in-toto+json';

/** An entry of a transparency log with the index 0. */
export interface TestLogEntry {
  readonly body: Buffer;
  readonly integratedTime: number;
  readonly logId: Buffer;
  readonly signedEntryTimestamp: Buffer;
  readonly rootHash: string;
  readonly checkpoint: string;
}

/** Makes signatures, with a certificate and log entries if it is keyless. */
export interface ArtifactSigner {
  readonly sign: (bytes: Uint8Array) => Buffer;
  readonly certificate?: { readonly pem: string; readonly der: Buffer };
  readonly logEntry?: (body: object) => TestLogEntry;
}

/** A layer with a signature in cosign's older layout. */
export interface SignatureLayer {
  readonly claim: Uint8Array;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A key pair, and its signer. */
export function keySigner(
  type: 'P-256' | 'P-384' | 'P-521' | 'rsa' | 'ed25519' = 'P-256',
  hash: string | null = type === 'ed25519' ? null : 'sha256',
): ArtifactSigner & { readonly publicKey: string } {
  const { publicKey, privateKey } = newKeyPair(type);
  return {
    sign: (bytes) => sign(hash, bytes, privateKey),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

function newKeyPair(type: string): { publicKey: KeyObject; privateKey: KeyObject } {
  switch (type) {
    case 'rsa':
      return generateKeyPairSync('rsa', { modulusLength: 2048 });
    case 'ed25519':
      return generateKeyPairSync('ed25519');
    default:
      return generateKeyPairSync('ec', { namedCurve: type });
  }
}

/** A signature in cosign's older layout. */
export function signatureLayer(
  { sign: signWith, certificate, logEntry }: ArtifactSigner,
  digest: string,
  optional: object | null = null,
): SignatureLayer {
  const claim = Buffer.from(
    JSON.stringify({
      critical: {
        identity: { 'docker-reference': 'registry.example.com/policies/one' },
        image: { 'docker-manifest-digest': digest },
        type: 'cosign container image signature',
      },
      optional,
    }),
  );
  const signature = signWith(claim).toString('base64');
  const annotations: Record<string, string> = { 'dev.cosignproject.cosign/signature': signature };
  if (certificate !== undefined && logEntry !== undefined) {
    const entry = logEntry({
      apiVersion: '0.0.1',
      kind: 'hashedrekord',
      spec: {
        data: { hash: { algorithm: 'sha256', value: createHash('sha256').update(claim).digest('hex') } },
        signature: {
          content: signature,
          publicKey: { content: Buffer.from(certificate.pem).toString('base64') },
        },
      },
    });
    annotations['dev.sigstore.cosign/certificate'] = `${certificate.pem}\n`;
    annotations['dev.sigstore.cosign/chain'] = certificate.pem;
    annotations['dev.sigstore.cosign/bundle'] = JSON.stringify({
      SignedEntryTimestamp: entry.signedEntryTimestamp.toString('base64'),
      Payload: {
        body: entry.body.toString('base64'),
        integratedTime: entry.integratedTime,
        logIndex: 0,
        logID: entry.logId.toString('hex'),
      },
    });
  }
  return { claim, annotations };
}

/** A bundle with a statement about an artifact, as of cosign 3. */
export function statementBundle(
  signer: ArtifactSigner,
  digest: string,
  { annotations = {}, predicateType = SIGN_PREDICATE }: { annotations?: object; predicateType?: string } = {},
): object {
  const payload = Buffer.from(
    JSON.stringify({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ digest: { sha256: digest.replace('sha256:', '') }, annotations }],
      predicateType,
      predicate: {},
    }),
  );
  const signed = Buffer.concat([
    Buffer.from(`DSSEv1 ${STATEMENT_TYPE.length} ${STATEMENT_TYPE} ${payload.length} `),
    payload,
  ]);
  const signature = signer.sign(signed).toString('base64');
  const hash = createHash('sha256').update(payload).digest('hex');
  const entry = signer.logEntry?.({
    apiVersion: '0.0.1',
    kind: 'dsse',
    spec: {
      payloadHash: { algorithm: 'sha256', value: hash },
      signatures: [{ signature, verifier: Buffer.from(signer.certificate?.pem ?? '').toString('base64') }],
    },
  });
  return {
    ...bundleOf(signer, entry, 'dsse'),
    dsseEnvelope: {
      payload: payload.toString('base64'),
      payloadType: STATEMENT_TYPE,
      signatures: [{ sig: signature }],
    },
  };
}

/** A bundle with a signature of a manifest itself. */
export function messageBundle(signer: ArtifactSigner, manifest: Uint8Array): object {
  const signature = signer.sign(manifest).toString('base64');
  const digest = createHash('sha256').update(manifest).digest();
  const entry = signer.logEntry?.({
    apiVersion: '0.0.1',
    kind: 'hashedrekord',
    spec: {
      data: { hash: { algorithm: 'sha256', value: digest.toString('hex') } },
      signature: {
        content: signature,
        publicKey: { content: Buffer.from(signer.certificate?.pem ?? '').toString('base64') },
      },
    },
  });
  return {
    ...bundleOf(signer, entry, 'hashedrekord'),
    messageSignature: { messageDigest: { algorithm: 'SHA2_256', digest: digest.toString('base64') }, signature },
  };
}

function bundleOf({ certificate }: ArtifactSigner, entry: TestLogEntry | undefined, kind: string): object {
  return {
    mediaType: BUNDLE_TYPE,
    verificationMaterial: {
      ...(certificate === undefined
        ? { publicKey: { hint: 'key' } }
        : { certificate: { rawBytes: certificate.der.toString('base64') } }),
      tlogEntries:
        entry === undefined
          ? []
          : [
              {
                logIndex: '0',
                logId: { keyId: entry.logId.toString('base64') },
                kindVersion: { kind, version: '0.0.1' },
                integratedTime: `${entry.integratedTime}`,
                inclusionPromise: { signedEntryTimestamp: entry.signedEntryTimestamp.toString('base64') },
                inclusionProof: {
                  logIndex: '0',
                  rootHash: entry.rootHash,
                  treeSize: '1',
                  hashes: [],
                  checkpoint: { envelope: entry.checkpoint },
                },
                canonicalizedBody: entry.body.toString('base64'),
              },
            ],
    },
  };
}

/** Stores signatures under cosign's tag. */
export function attachLayers(
  registry: TestRegistry,
  repository: string,
  digest: string,
  layers: readonly SignatureLayer[],
): void {
  const config = registry.blob(repository, Buffer.from('{}'), 'application/vnd.oci.image.config.v1+json');
  registry.manifest(repository, `${digest.replace(':', '-')}.sig`, {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config,
    layers: layers.map(({ claim, annotations }) => ({ ...registry.blob(repository, claim, LAYER_TYPE), annotations })),
  });
}

/** Stores bundles as referrers, with the tag of the list of referrers. Returns the list. */
export function attachBundles(
  registry: TestRegistry,
  repository: string,
  digest: string,
  bundles: readonly (object | Uint8Array)[],
): object {
  const config = registry.blob(repository, Buffer.from('{}'), 'application/vnd.oci.empty.v1+json');
  const manifests = bundles.map((bundle) => {
    const bytes = bundle instanceof Uint8Array ? bundle : Buffer.from(JSON.stringify(bundle));
    const layer = registry.blob(repository, bytes, BUNDLE_TYPE);
    const referrer = registry.manifest(repository, 'unused', {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      artifactType: BUNDLE_TYPE,
      config,
      layers: [layer],
      subject: { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size: 1 },
    });
    return { ...referrer, artifactType: BUNDLE_TYPE };
  });
  const list = { schemaVersion: 2, mediaType: INDEX_TYPE, manifests };
  registry.manifest(repository, digest.replace(':', '-'), list, INDEX_TYPE);
  return list;
}
