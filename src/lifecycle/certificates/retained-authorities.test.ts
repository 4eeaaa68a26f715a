import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createAuthority } from '../../https/index.ts';
import { RetainedAuthorities, type InspectedSecret } from './retained-authorities.ts';
import { type ParsedCertificate, parseCertificates } from './parsed-certificate.ts';

const NOW = Date.UTC(2030, 0, 1);
const OVERLAP_MS = 900_000;

describe('RetainedAuthorities', () => {
  let one: ParsedCertificate;
  let two: ParsedCertificate;
  let foreign: ParsedCertificate;
  before(async () => {
    const made = await Promise.all(
      ['one', 'two', 'foreign'].map((commonName) =>
        createAuthority({
          commonName,
          notBefore: new Date(NOW - OVERLAP_MS),
          notAfter: new Date(NOW + 100 * OVERLAP_MS),
        }),
      ),
    );
    [one, two, foreign] = parseCertificates(made.map(({ cert }) => cert).join('')) as [
      ParsedCertificate,
      ParsedCertificate,
      ParsedCertificate,
    ];
  });

  const secret = (...authorities: readonly ParsedCertificate[]): InspectedSecret => ({
    secret: 'a',
    authorities,
    isUsable: authorities.length > 0,
  });
  const other = (): InspectedSecret => ({ secret: 'b', authorities: [two], isUsable: true });
  const none = (): readonly ParsedCertificate[] => [];
  const names = (all: readonly ParsedCertificate[]): readonly string[] =>
    all.map(({ x509 }) => x509.subject.replace('CN=', '')).toSorted();

  it('trusts a CA for an overlap after the last Secret contained it', () => {
    const retained = new RetainedAuthorities(OVERLAP_MS);
    retained.update([secret(one), other()], none, NOW);
    const trustedAfter = (ms: number): readonly string[] =>
      names(retained.update([secret(two), other()], none, NOW + ms).trusted);
    assert.deepEqual(trustedAfter(1), ['one', 'two']);
    assert.equal(retained.update([secret(two), other()], none, NOW + 2).nextChangeMs, OVERLAP_MS - 2);
    assert.deepEqual(trustedAfter(OVERLAP_MS - 1), ['one', 'two']);
    assert.deepEqual(trustedAfter(OVERLAP_MS), ['two']);
  });

  it('trusts a CA while a Secret that contained it is missing or unusable', () => {
    const retained = new RetainedAuthorities(OVERLAP_MS);
    retained.update([secret(one), other()], none, NOW);
    const late = NOW + 10 * OVERLAP_MS;
    assert.deepEqual(names(retained.update([secret(), other()], none, late).trusted), ['one', 'two']);
    assert.deepEqual(names(retained.update([secret(two), other()], none, late + 1).trusted), ['one', 'two']);
    assert.deepEqual(names(retained.update([secret(two), other()], none, late + OVERLAP_MS).trusted), ['two']);
    // The Secret of a deleted PolicyServer does not count as missing.
    const deleted = new RetainedAuthorities(OVERLAP_MS);
    deleted.update([secret(one), other()], none, NOW);
    assert.deepEqual(names(deleted.update([other()], none, NOW + OVERLAP_MS).trusted), ['two']);
  });

  it('takes over the CAs in webhook configurations from the former leader', () => {
    const retained = new RetainedAuthorities(OVERLAP_MS);
    const published = (): readonly ParsedCertificate[] => [foreign];
    assert.deepEqual(names(retained.update([other()], published, NOW).trusted), ['foreign', 'two']);
    assert.deepEqual(names(retained.update([other()], published, NOW + OVERLAP_MS).trusted), ['two']);
    retained.forget();
    const late = NOW + 2 * OVERLAP_MS;
    assert.deepEqual(names(retained.update([secret(), other()], published, late).trusted), ['foreign', 'two']);
    assert.deepEqual(names(retained.update([secret(), other()], published, late + 2 * OVERLAP_MS).trusted), [
      'foreign',
      'two',
    ]);
  });

  it('does not trust an expired CA', () => {
    const retained = new RetainedAuthorities(OVERLAP_MS);
    retained.update([secret(one), other()], none, one.notAfter - 2);
    assert.deepEqual(names(retained.update([secret(two), other()], none, one.notAfter).trusted), ['two']);
  });
});
