import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { describe, it } from 'node:test';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { createAuthority, issueCertificate } from '../../https/index.ts';
import { bundleOf, isSigningKeyOf, issuerOf, missingPurpose, parseCertificates } from './parsed-certificate.ts';

const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const RSA = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  publicExponent: new Uint8Array([1, 0, 1]),
  modulusLength: 2048,
};

describe('parseCertificates', () => {
  it('finds certificates in other text, and bundles them without duplicates', async () => {
    const { cert, key } = await createAuthority({ commonName: 'one', ...validity });
    const text = `# a comment\n${cert}${key}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n${cert}`;
    const found = parseCertificates(text);
    assert.equal(found.length, 2);
    assert.equal(bundleOf(found), cert);
    assert.deepEqual(parseCertificates(''), []);
    assert.deepEqual(parseCertificates('-----BEGIN CERTIFICATE-----'.repeat(5_000)), []);
    assert.deepEqual(parseCertificates(cert.repeat(1_000)), [], 'a text that is no bundle');
    assert.equal(parseCertificates(cert.repeat(40)).length, 32);
  });

  it('finds the issuer directly or through intermediates, with any algorithm', async () => {
    const root = await webcrypto.subtle.generateKey(RSA, true, ['sign', 'verify']);
    const middle = await webcrypto.subtle.generateKey(EC, true, ['sign', 'verify']);
    const ca = await x509.X509CertificateGenerator.createSelfSigned(
      {
        name: 'CN=root',
        serialNumber: '01',
        ...validity,
        keys: root,
        signingAlgorithm: RSA,
        extensions: [new x509.BasicConstraintsExtension(true, 1, true)],
      },
      webcrypto,
    );
    const intermediate = await x509.X509CertificateGenerator.create(
      {
        subject: 'CN=middle',
        issuer: ca.subject,
        serialNumber: '02',
        ...validity,
        publicKey: middle.publicKey,
        signingKey: root.privateKey,
        signingAlgorithm: RSA,
        extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
      },
      webcrypto,
    );
    const middleKey = x509.PemConverter.encode(
      await webcrypto.subtle.exportKey('pkcs8', middle.privateKey),
      'PRIVATE KEY',
    );
    const rootKey = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', root.privateKey), 'PRIVATE KEY');
    const leaf = await issueCertificate(
      { cert: intermediate.toString('pem'), key: middleKey },
      { commonName: 'leaf', usages: ['serverAuth'], dnsNames: ['a.example.com'], ...validity },
    );
    const [trusted, between] = parseCertificates(`${ca.toString('pem')}\n${intermediate.toString('pem')}`);
    assert.ok(trusted && between);
    const chain = parseCertificates(leaf.cert + between.pem);
    assert.equal(issuerOf(chain, [trusted])?.id, trusted.id);
    assert.equal(issuerOf(chain.slice(0, 1), [trusted]), undefined);
    assert.equal(issuerOf(chain.slice(0, 1), [trusted, between])?.id, between.id);
    assert.equal(issuerOf([], [trusted]), undefined);
    assert.equal(isSigningKeyOf(middleKey, between), true);
    assert.equal(isSigningKeyOf(rootKey, trusted), false, 'not with RSA');
    assert.equal(isSigningKeyOf('no key', between), false);
  });

  it('checks the DNS names and usages of a certificate', async () => {
    const authority = await createAuthority({ commonName: 'one', ...validity });
    const request = {
      commonName: 'a.svc',
      usages: ['serverAuth'] as const,
      dnsNames: ['b.svc', '*.c.svc'],
      ...validity,
    };
    const [leaf] = parseCertificates((await issueCertificate(authority, request)).cert);
    assert.ok(leaf);
    const missing = (dnsNames: readonly string[], ...usages: ('serverAuth' | 'clientAuth')[]): string | undefined =>
      missingPurpose(leaf, { dnsNames, usages });
    assert.equal(missing(['b.svc'], 'serverAuth'), undefined);
    assert.equal(missing(['b.svc', 'a.svc']), 'is not for a.svc');
    assert.equal(missing(['x.c.svc']), 'is not for x.c.svc');
    assert.equal(missing([], 'serverAuth', 'clientAuth'), 'is not for use as a client');
    const [ca] = parseCertificates(authority.cert);
    assert.ok(ca);
    assert.equal(missingPurpose(ca, { dnsNames: [], usages: ['clientAuth'] }), undefined);
  });
});
