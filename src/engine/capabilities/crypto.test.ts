import 'reflect-metadata';
import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { test } from 'node:test';
import { BasicConstraintsExtension, X509CertificateGenerator } from '@peculiar/x509';
import type { X509Certificate } from '@peculiar/x509';
import { CA_REASON, CertificateVerifier, EXPIRED_REASON, NOT_YET_VALID_REASON, UNTRUSTED_REASON } from './crypto.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const YEAR_MS = 365 * 24 * 3600 * 1000;

interface Issued {
  readonly certificate: X509Certificate;
  readonly keys: webcrypto.CryptoKeyPair;
}

/** Issues a certificate that is valid between two points in time, in years from now. */
async function issue(
  name: string,
  from: number,
  to: number,
  issuer?: Issued,
  isCa = issuer === undefined,
): Promise<Issued> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create(
    {
      subject: `CN=${name}`,
      issuer: issuer === undefined ? `CN=${name}` : issuer.certificate.subject,
      notBefore: new Date(Date.now() + from * YEAR_MS),
      notAfter: new Date(Date.now() + to * YEAR_MS),
      signingKey: (issuer ?? { keys }).keys.privateKey,
      publicKey: keys.publicKey,
      signingAlgorithm: ALGORITHM,
      extensions: [new BasicConstraintsExtension(isCa, undefined, true)],
    },
    webcrypto,
  );
  return { certificate, keys };
}

function pem({ certificate }: Issued): { encoding: string; data: number[] } {
  return { encoding: 'Pem', data: [...Buffer.from(certificate.toString('pem'))] };
}

function der({ certificate }: Issued): { encoding: string; data: number[] } {
  return { encoding: 'Der', data: [...new Uint8Array(certificate.rawData)] };
}

const TRUSTED = { trusted: true, reason: '' };
const untrusted = (reason: string): object => ({ trusted: false, reason });

test('trusts certificates that lead to the last one of the chain, in both encodings', async () => {
  const root = await issue('root', -2, 2);
  const middle = await issue('middle', -1, 1, root, true);
  const leaf = await issue('leaf', -1, 1, middle);
  const direct = await issue('direct', -1, 1, root);
  const verifier = new CertificateVerifier();
  assert.deepEqual(verifier.verify({ cert: pem(leaf), cert_chain: [der(middle), pem(root)] }), TRUSTED);
  assert.deepEqual(verifier.verify({ cert: der(direct), cert_chain: [pem(root)], not_after: null }), TRUSTED);
});

test('gives the reason for no trust', async () => {
  const root = await issue('root', -2, 2);
  const impostor = await issue('root', -2, 2);
  const middle = await issue('middle', -2, -1, root, true);
  const notCa = await issue('not-ca', -1, 1, root);
  const verifier = new CertificateVerifier();
  const expired = await issue('leaf', -2, -1, root);
  const early = await issue('leaf', 1, 2, root);
  const leaf = await issue('leaf', -1, 1, root);
  const behind = await issue('leaf', -1, 1, middle);
  const behindNotCa = await issue('leaf', -1, 1, notCa);
  for (const [cert, chain, reason] of [
    [expired, [root], EXPIRED_REASON],
    [early, [root], NOT_YET_VALID_REASON],
    [leaf, [impostor], UNTRUSTED_REASON],
    [leaf, [], UNTRUSTED_REASON],
    [behind, [root], UNTRUSTED_REASON],
    [behind, [middle, root], EXPIRED_REASON],
    [behindNotCa, [notCa, root], UNTRUSTED_REASON],
    [root, [root], CA_REASON],
  ] as const) {
    assert.deepEqual(verifier.verify({ cert: pem(cert), cert_chain: chain.map(pem) }), untrusted(reason));
  }
});

test('checks dates at the given time, except those of the root', async () => {
  const root = await issue('root', -3, -2);
  const leaf = await issue('leaf', -2, 2, root);
  const verifier = new CertificateVerifier();
  const request = { cert: pem(leaf), cert_chain: [pem(root)] };
  assert.deepEqual(verifier.verify(request), TRUSTED);
  const at = (years: number): string => new Date(Date.now() + years * YEAR_MS).toISOString();
  assert.deepEqual(verifier.verify({ ...request, not_after: at(3) }), untrusted(EXPIRED_REASON));
  assert.deepEqual(
    verifier.verify({ ...request, not_after: at(-2.5).replace('Z', '+00:00') }),
    untrusted(NOT_YET_VALID_REASON),
  );
});

test('without a chain, only public roots are trusted', async () => {
  const root = await issue('root', -1, 1);
  const leaf = await issue('leaf', -1, 1, root);
  assert.deepEqual(new CertificateVerifier().verify({ cert: pem(leaf) }), untrusted(UNTRUSTED_REASON));
});

test('refuses payloads of another shape', async () => {
  const root = await issue('root', -1, 1);
  const cert = pem(await issue('leaf', -1, 1, root));
  const verifier = new CertificateVerifier();
  for (const payload of [
    null,
    {},
    { cert: 'x' },
    { cert: { encoding: 'Pem', data: [1, 2] } },
    { cert: { encoding: 'Der', data: [1, 2] } },
    { cert: { encoding: 'Der', data: cert.data } },
    { cert: { encoding: 'Pem', data: ['1'] } },
    { cert: { encoding: 'Pem', data: [256] } },
    { cert, cert_chain: {} },
    { cert, cert_chain: Array.from({ length: 100 }, () => cert) },
    { cert, not_after: 'tomorrow' },
    { cert, not_after: 5 },
  ]) {
    assert.throws(() => verifier.verify(payload), /expected/, JSON.stringify(payload)?.slice(0, 60));
  }
});
