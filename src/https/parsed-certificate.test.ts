import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createAuthority } from './certificate-authority.ts';
import { readCertificates } from './parsed-certificate.ts';

describe('readCertificates', () => {
  let cert: string;
  before(async () => {
    const validity = { notBefore: new Date('2030-01-01T00:00:00Z'), notAfter: new Date('2031-01-01T00:00:00Z') };
    ({ cert } = await createAuthority({ commonName: 'test', ...validity }));
  });
  const read = (text: string) => {
    const { certificates, problems } = readCertificates(text);
    return [certificates.length, problems.map((problem) => problem.replace(/parsed: .*/u, 'parsed'))];
  };

  it('reports nothing when all certificates are read', () => {
    assert.deepEqual(read(`# a comment\n${cert}${cert}`), [2, []]);
    assert.deepEqual(read(''), [0, []]);
    const [certificate] = readCertificates(cert).certificates;
    assert.equal(certificate?.notAfter, Date.parse('2031-01-01T00:00:00Z'));
  });

  it('reports every certificate that is not among the result', () => {
    const block = (body: string): string => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
    assert.deepEqual(read(block('AAAA') + cert), [1, ['certificate 1 cannot be parsed']]);
    assert.deepEqual(read(`${block('?')}${cert}-----BEGIN CERTIFICATE-----`), [
      1,
      ['2 certificates are not valid PEM'],
    ]);
    assert.deepEqual(read(cert.repeat(33)), [32, ['more than 32 certificates']]);
    assert.deepEqual(read(cert.repeat(1_000)), [0, ['longer than 131072 characters']]);
  });
});
