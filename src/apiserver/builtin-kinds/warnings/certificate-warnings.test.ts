import assert from 'node:assert/strict';
import { generateKeyPairSync, webcrypto } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { secretWarnings } from './certificate-warnings.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const pem = (type: string, body: string): string => `-----BEGIN ${type}-----\n${body}\n-----END ${type}-----\n`;
const OTHER = pem('OTHER', 'YWJj');

/** A certificate of a new key. */
async function certified(): Promise<readonly [certificate: string, key: string]> {
  await import('reflect-metadata');
  const { X509CertificateGenerator, PemConverter } = await import('@peculiar/x509');
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const name = 'CN=test';
  const certificate = await X509CertificateGenerator.createSelfSigned(
    { name, keys, signingAlgorithm: ALGORITHM },
    webcrypto,
  );
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return [certificate.toString('pem'), PemConverter.encode(key, 'PRIVATE KEY')];
}

function warningOf(certificate: string, key: string, type = 'kubernetes.io/tls'): string | undefined {
  const data = { 'tls.crt': btoa(certificate), 'tls.key': btoa(key) };
  return secretWarnings({ type, data })[0];
}

// The texts are those of kube-apiserver v1.34.4 for the same kinds of files.
describe('warnings about certificates in Secrets', () => {
  let [certificate, key] = ['', ''];
  let otherKey = '';
  before(async () => {
    [certificate, key] = await certified();
    [, otherKey] = await certified();
  });

  it('are none for a certificate with its key, whatever stands before it, and for other Secrets', () => {
    assert.equal(warningOf(certificate, key), undefined);
    assert.equal(warningOf(OTHER + certificate, OTHER + key), undefined);
    assert.equal(warningOf('a', 'b', 'Opaque'), undefined);
  });

  it('are about keys of other certificates', () => {
    assert.equal(warningOf(certificate, otherKey), 'tls: private key does not match public key');
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({
      format: 'pem',
      type: 'pkcs1',
    });
    assert.equal(warningOf(certificate, String(rsa)), 'tls: private key type does not match public key type');
  });

  it('are about files that have something else', () => {
    const texts = {
      'tls: failed to find any PEM data in certificate input': warningOf('', key),
      'tls: failed to find any PEM data in key input': warningOf(certificate, ''),
      'tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched':
        warningOf(key, certificate),
      'tls: found a certificate rather than a key in the PEM for the private key': warningOf(certificate, certificate),
      'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [OTHER]':
        warningOf(OTHER, key),
      'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: [OTHER]':
        warningOf(certificate, OTHER),
      'x509: malformed certificate': warningOf(pem('CERTIFICATE', 'YWJj'), key),
      'tls: failed to parse private key': warningOf(certificate, pem('PRIVATE KEY', 'YWJj')),
    };
    for (const [expected, warning] of Object.entries(texts)) {
      assert.equal(warning, expected);
    }
  });
});
