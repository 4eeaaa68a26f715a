import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createAuthority } from '../../https/index.ts';
import { KeptAuthorities, type SeenSecret } from './kept-authorities.ts';
import { type ParsedCertificate, parseCertificates } from './parsed-certificate.ts';

const NOW = Date.UTC(2030, 0, 1);
const OVERLAP_MS = 900_000;

describe('CAs that others keep', () => {
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

  const secret = (...authorities: readonly ParsedCertificate[]): SeenSecret => ({
    secret: 'a',
    authorities,
    isUsable: authorities.length > 0,
  });
  const other = (): SeenSecret => ({ secret: 'b', authorities: [two], isUsable: true });
  const none = (): readonly ParsedCertificate[] => [];
  const names = (all: readonly ParsedCertificate[]): readonly string[] =>
    all.map(({ x509 }) => x509.subject.replace('CN=', '')).toSorted();

  it('are trusted on for an overlap when certificates of another one take their place', () => {
    const kept = new KeptAuthorities(OVERLAP_MS);
    kept.look([secret(one), other()], none, NOW);
    const look = (ms: number): readonly string[] => names(kept.look([secret(two), other()], none, NOW + ms).trusted);
    assert.deepEqual(look(1), ['one', 'two']);
    assert.equal(kept.look([secret(two), other()], none, NOW + 2).nextChangeMs, OVERLAP_MS - 2);
    assert.deepEqual(look(OVERLAP_MS - 1), ['one', 'two']);
    assert.deepEqual(look(OVERLAP_MS), ['two']);
  });

  it('are trusted on for as long as a Secret that had them is missing or broken', () => {
    const kept = new KeptAuthorities(OVERLAP_MS);
    kept.look([secret(one), other()], none, NOW);
    const late = NOW + 10 * OVERLAP_MS;
    assert.deepEqual(names(kept.look([secret(), other()], none, late).trusted), ['one', 'two']);
    assert.deepEqual(names(kept.look([secret(two), other()], none, late + 1).trusted), ['one', 'two']);
    assert.deepEqual(names(kept.look([secret(two), other()], none, late + OVERLAP_MS).trusted), ['two']);
    // A PolicyServer that is gone has no Secret that could be waited for.
    const gone = new KeptAuthorities(OVERLAP_MS);
    gone.look([secret(one), other()], none, NOW);
    assert.deepEqual(names(gone.look([other()], none, NOW + OVERLAP_MS).trusted), ['two']);
  });

  it('are known to the next leader from what API servers are told', () => {
    const kept = new KeptAuthorities(OVERLAP_MS);
    const told = (): readonly ParsedCertificate[] => [foreign];
    assert.deepEqual(names(kept.look([other()], told, NOW).trusted), ['foreign', 'two']);
    assert.deepEqual(names(kept.look([other()], told, NOW + OVERLAP_MS).trusted), ['two']);
    kept.forget();
    const late = NOW + 2 * OVERLAP_MS;
    assert.deepEqual(names(kept.look([secret(), other()], told, late).trusted), ['foreign', 'two']);
    assert.deepEqual(names(kept.look([secret(), other()], told, late + 2 * OVERLAP_MS).trusted), ['foreign', 'two']);
  });

  it('end with their own time', () => {
    const kept = new KeptAuthorities(OVERLAP_MS);
    kept.look([secret(one), other()], none, one.notAfter - 2);
    assert.deepEqual(names(kept.look([secret(two), other()], none, one.notAfter).trusted), ['two']);
  });
});
