// Signatures come from registries: whatever they contain, they are refused without an exception.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';

import fc from 'fast-check';

import { digestOf } from '../reference/digest.ts';
import type { Descriptor } from '../oci/manifest.ts';
import { TestSigstore } from '../testing/test-sigstore.ts';
import { type ArtifactSigner, messageBundle, signatureLayer, statementBundle } from '../testing/test-signer.ts';
import { parseTrustRoot } from '../sources/trust-root.ts';
import { bundleSignature } from './bundle-signature.ts';
import { type CertificateIdentity, KeylessVerifier } from './certificate-identity.ts';
import { layerSignature } from './layer-signature.ts';
import type { Signature } from './signature.ts';

const MANIFEST = Buffer.from('{"schemaVersion":2}');
const DIGEST = digestOf(MANIFEST);
const ARTIFACT = { digest: DIGEST, manifest: async () => MANIFEST };
const IDENTITY: CertificateIdentity = { issuer: 'https://issuer.example.com', subject: 'a@example.com' };

describe('malformed signatures', () => {
  let signer: ArtifactSigner;
  let verifier: KeylessVerifier;
  before(async () => {
    const sigstore = await TestSigstore.create();
    signer = await sigstore.signer({ issuer: IDENTITY.issuer, subjects: [IDENTITY.subject] });
    verifier = new KeylessVerifier(parseTrustRoot(sigstore.trustedRoot, 'root.json'));
  });

  const layer = (annotations: Readonly<Record<string, string>>): Descriptor => ({
    mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json',
    digest: DIGEST,
    size: 1,
    annotations: new Map(Object.entries(annotations)),
    artifactType: '',
    architecture: '',
  });

  /** Refused, or the identity of the signer: nobody else's. */
  function assertHarmless(signature: Signature | string): void {
    const identity = typeof signature === 'string' ? signature : verifier.identityOf(signature);
    assert.ok(typeof identity === 'string' || JSON.stringify(identity) === JSON.stringify(IDENTITY));
  }

  it('of any JSON are refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.json(), fc.string()), async (text) => {
        assert.equal(typeof (await bundleSignature(text, 'signature', ARTIFACT)), 'string');
        assert.equal(typeof layerSignature(layer({}), Buffer.from(text), 'signature', DIGEST), 'string');
      }),
    );
  });

  it('with any value in the place of another are refused, or change nothing', async () => {
    const bundles = [statementBundle(signer, DIGEST), messageBundle(signer, MANIFEST)];
    const places = bundles.flatMap((bundle) => placesOf(bundle).map((place) => ({ bundle, place })));
    const { verificationMaterial } = bundles[0] as { verificationMaterial: object };
    assert.ok(placesOf(verificationMaterial).length > 10);
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...places), fc.jsonValue({ maxDepth: 2 }), async ({ bundle, place }, value) => {
        const text = JSON.stringify(replaced(bundle, place, value));
        assertHarmless(await bundleSignature(text, 'signature', ARTIFACT));
      }),
      { numRuns: 300 },
    );
  });

  it('with changed characters are refused, or change nothing', async () => {
    const text = JSON.stringify(statementBundle(signer, DIGEST));
    const { claim, annotations } = signatureLayer(signer, DIGEST);
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.constantFrom('A', '/', '=', '0', '"', '{', '\\'), async (at, character) => {
        assertHarmless(await bundleSignature(withCharacter(text, at, character), 'signature', ARTIFACT));
        for (const [name, value] of Object.entries(annotations)) {
          const wrong = layer({ ...annotations, [name]: withCharacter(value, at, character) });
          assertHarmless(layerSignature(wrong, claim, 'signature', DIGEST));
        }
        const other = Buffer.from(withCharacter(Buffer.from(claim).toString(), at, character));
        assertHarmless(layerSignature(layer(annotations), other, 'signature', DIGEST));
      }),
      { numRuns: 150 },
    );
  });

  it('with deep nesting are refused', async () => {
    const deep = '['.repeat(50_000) + ']'.repeat(50_000);
    const bundle = JSON.stringify(statementBundle(signer, DIGEST));
    for (const text of [
      deep,
      bundle.replace('{', `{"verificationMaterial":${deep},`),
      bundle.replace('"0.0.1"', deep),
    ]) {
      assert.equal(await bundleSignature(text, 'signature', ARTIFACT), 'is not a bundle of Sigstore');
    }
    assert.equal(typeof layerSignature(layer({}), Buffer.from(`{"optional":${deep}}`), 'signature', DIGEST), 'string');
  });

  it('with more evidence than a real one has are refused before it is verified', async () => {
    const bundle = statementBundle(signer, DIGEST) as { verificationMaterial: { tlogEntries: object[] } };
    const [entry] = bundle.verificationMaterial.tlogEntries;
    assert.ok(entry);
    const tlogEntries = Array.from({ length: 5 }, () => entry);
    const text = JSON.stringify({ ...bundle, verificationMaterial: { ...bundle.verificationMaterial, tlogEntries } });
    const large = { ...bundle.verificationMaterial, certificate: { rawBytes: 'A'.repeat(25_000) } };
    for (const wrong of [text, JSON.stringify({ ...bundle, verificationMaterial: large })]) {
      assert.equal(await bundleSignature(wrong, 'signature', ARTIFACT), 'is not a bundle of Sigstore');
    }
  });
});

type Place = readonly string[];

/** The paths of all values in a JSON value. */
function placesOf(value: unknown, place: Place = []): readonly Place[] {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return entries.flatMap(([name, item]) => [[...place, name], ...placesOf(item, [...place, name])]);
}

function replaced(value: unknown, [name, ...rest]: Place, by: unknown): unknown {
  if (name === undefined) {
    return by;
  }
  const changed = replaced((value as Record<string, unknown>)[name], rest, by);
  return Array.isArray(value) ? value.with(Number(name), changed) : { ...(value as object), [name]: changed };
}

function withCharacter(text: string, at: number, character: string): string {
  const index = at % text.length;
  return `${text.slice(0, index)}${character}${text.slice(index + 1)}`;
}
