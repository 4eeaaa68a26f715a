import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { alternativeNames } from './alternative-names.ts';
import { pem } from './testing/certificate-scene.ts';

describe('alternativeNames', () => {
  it('reads DNS names, addresses, URIs and e-mail addresses, and no others', async () => {
    const names = [
      'a.example.com',
      { type: 'ip', value: '10.0.0.1' },
      { type: 'ip', value: '::1' },
      { type: 'url', value: 'spiffe://a/b,c' },
      { type: 'email', value: 'a@example.com' },
      { type: 'dn', value: 'CN=foo,O=bar' },
    ] as const;
    assert.deepEqual(alternativeNames(new X509Certificate(await pem({ names }))), [
      'a.example.com',
      '10.0.0.1',
      '::1',
      'spiffe://a/b,c',
      'a@example.com',
    ]);
    assert.deepEqual(alternativeNames(new X509Certificate(await pem())), []);
  });

  it('does not take part of a name for another one', async () => {
    const names = ['a, DNS:evil.example.com', 'b", DNS:"c\\', 'é\u0000'];
    assert.deepEqual(alternativeNames(new X509Certificate(await pem({ names }))), names);
  });

  it('is undefined for other texts, and for too many names', () => {
    for (const subjectAltName of [
      'x',
      'DNS:"a',
      'DNS:"\\x"',
      'DNS:a, ;',
      'DNS:a,b',
      'IP Address:<invalid length=5>',
      `${'DNS:a, '.repeat(1_000)}DNS:a`,
    ]) {
      assert.equal(alternativeNames({ subjectAltName }), undefined, subjectAltName.slice(0, 20));
    }
    assert.equal(alternativeNames({ subjectAltName: Array(1_000).fill('DNS:a').join(', ') })?.length, 1_000);
  });

  it('takes any text', () => {
    fc.assert(fc.property(fc.string(), (subjectAltName) => void alternativeNames({ subjectAltName })));
  });
});
