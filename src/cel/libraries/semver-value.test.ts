import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import semver from 'semver';
import { EvaluationFailure } from '../model/value.ts';
import { parseSemver, Semver } from './semver-value.ts';

function version(text: string): Semver {
  const parsed = parseSemver(text);
  assert.ok(parsed instanceof Semver, text);
  return parsed;
}

const identifiers = fc.array(fc.constantFrom('0', '1', '10', 'a', 'b', 'rc', 'a-b', '1a'), { maxLength: 3 });
const versions = fc
  .tuple(fc.nat(3), fc.nat(3), fc.nat(3), identifiers, identifiers)
  .map(([major, minor, patch, prerelease, build]) => {
    const before = prerelease.length === 0 ? '' : `-${prerelease.join('.')}`;
    return `${major}.${minor}.${patch}${before}${build.length === 0 ? '' : `+${build.join('.')}`}`;
  });

describe('versions', () => {
  test('are ordered as the npm package semver orders them', () => {
    fc.assert(
      fc.property(versions, versions, (one, other) => {
        assert.equal(version(one).compareTo(version(other)), semver.compare(one, other));
        assert.equal(version(one).toString(), one);
      }),
    );
  });

  test('are parsed or rejected for any text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...Array.from('v0123.-+a é')), maxLength: 16 }),
        fc.boolean(),
        (text, mend) => {
          const read = parseSemver(text, mend);
          assert.ok(read instanceof Semver || read instanceof EvaluationFailure);
        },
      ),
    );
  });

  test('have numbers of up to 64 bits', () => {
    assert.equal(version('18446744073709551615.0.0').major, 2n ** 64n - 1n);
    assert.ok(parseSemver('18446744073709551616.0.0') instanceof EvaluationFailure);
    assert.ok(parseSemver(`1.0.0-${'9'.repeat(100_000)}`) instanceof EvaluationFailure);
  });
});
