import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { createAuthority, issueCertificate, type CertifiedKey } from './certificate-authority.ts';

const validity = { notBefore: new Date('2030-01-01T00:00:00Z'), notAfter: new Date('2031-01-01T00:00:00Z') };

describe('a certificate authority', () => {
  let authority: CertifiedKey;
  before(async () => {
    authority = await createAuthority({ commonName: 'test CA', ...validity });
  });

  it('is a self-signed CA with the given validity', () => {
    const certificate = new X509Certificate(authority.cert);
    assert.ok(certificate.ca);
    assert.ok(certificate.verify(certificate.publicKey));
    assert.ok(certificate.checkPrivateKey(createPrivateKey(authority.key)));
    assert.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1');
    assert.deepEqual([certificate.validFromDate, certificate.validToDate], [validity.notBefore, validity.notAfter]);
    assert.equal(certificate.serialNumber.length, 32);
  });

  it('signs certificates for names and addresses', async () => {
    const { cert, key } = await issueCertificate(authority, {
      commonName: 'web',
      usages: ['serverAuth'],
      dnsNames: ['web.example.com'],
      ipAddresses: ['127.0.0.1'],
      ...validity,
    });
    const leaf = new X509Certificate(cert);
    const ca = new X509Certificate(authority.cert);
    assert.ok(leaf.verify(ca.publicKey));
    assert.ok(leaf.checkIssued(ca));
    assert.ok(leaf.checkPrivateKey(createPrivateKey(key)));
    assert.equal(leaf.ca, false);
    assert.equal(leaf.subjectAltName, 'DNS:web.example.com, IP Address:127.0.0.1');
    assert.deepEqual(leaf.keyUsage, ['1.3.6.1.5.5.7.3.1']);
    assert.notEqual(leaf.serialNumber, ca.serialNumber);
  });
});
