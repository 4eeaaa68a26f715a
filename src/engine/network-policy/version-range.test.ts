import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseProviderVersion } from './provider-version.ts';
import { coverageFaults, isInRange, parseVersionRange } from './version-range.ts';

const rangesOf = (texts: readonly string[]) => texts.map((text) => parseVersionRange(text)!);

describe('versions of providers', () => {
  for (const [text, numbers, isPrerelease] of [
    ['1.15.4', [1, 15, 4], false],
    ['v1.15.4', [1, 15, 4], false],
    ['v1.15.4-eksbuild.1', [1, 15, 4], false],
    ['v3.28.1-rancher1-2', [3, 28, 1], false],
    ['v2.6.3+k3s1', [2, 6, 3], false],
    ['1.20', [1, 20, 0], false],
    ['v20240813-c6f155d6', [20_240_813, 0, 0], false],
    ['1.2.3.4', [1, 2, 3], false],
    ['1.16.0-rc.1', [1, 16, 0], true],
    ['1.16.0-pre.2', [1, 16, 0], true],
    ['1.16.0-dev', [1, 16, 0], true],
  ] as const) {
    it(`reads ${text}`, () => assert.deepEqual(parseProviderVersion(text), { numbers, isPrerelease }));
  }

  for (const text of [
    '',
    'latest',
    'sha256:00',
    '1.2.3.x'.repeat(100),
    '1'.repeat(30),
    '-1.2',
    '1..2',
    '1.x',
    '1.16.x',
  ]) {
    it(`does not read ${text.slice(0, 20)}`, () => assert.equal(parseProviderVersion(text), undefined));
  }
});

describe('ranges of versions', () => {
  for (const [range, version, expected] of [
    ['*', '0.0.1', true],
    ['>=1.16.0', 'v1.16.0-eksbuild.3', true],
    ['>=1.16.0', '1.15.99', false],
    ['<1.16.0', '1.15.99', true],
    ['>=1.15.0 <1.16.0', '1.16', false],
    ['>=20240801', 'v20240813-c6f155d6', true],
    ['<1.10.14 || >=1.11.0 <1.11.8', '1.10.13', true],
    ['<1.10.14 || >=1.11.0 <1.11.8', '1.10.14', false],
    ['<1.10.14 || >=1.11.0 <1.11.8', '1.11.7', true],
    ['<1.10.14 || >=1.11.0 <1.11.8', '1.11.8', false],
    ['>=1.15.5 <1.15.8 || >=1.15.9', '1.15.8', false],
    ['>=1.15.5 <1.15.8 || >=1.15.9', '2.0.0', true],
  ] as const) {
    it(`${range} ${expected ? 'contains' : 'does not contain'} ${version}`, () =>
      assert.equal(isInRange(parseProviderVersion(version)!, parseVersionRange(range)!), expected));
  }

  for (const text of [
    '',
    '1.2.0',
    '^1.2.0',
    '>1.2',
    '>=1.x',
    '<1.0.0 >=0.1.0',
    '>=2.0.0 <1.0.0',
    '>=1.0.0 <1.0.0',
    '*.*',
    '* || >=1.0.0',
    '>=1.0.0 || >=2.0.0',
    '>=2.0.0 <3.0.0 || <1.0.0',
    '<1.0.0 || >=1.0.0 <2.0.0',
    '<1.0.0||>=2.0.0',
    '<1.0.0 || ',
  ]) {
    it(`${JSON.stringify(text)} is none`, () => assert.equal(parseVersionRange(text), undefined));
  }

  it('cover every version once, or say where they do not', () => {
    assert.deepEqual(coverageFaults(rangesOf(['<1.0.0', '>=1.0.0 <2.0.0', '>=2.0.0'])), []);
    assert.deepEqual(coverageFaults(rangesOf(['*'])), []);
    assert.deepEqual(coverageFaults(rangesOf(['<1.0.0', '>=1.1.0'])), [
      'no row covers the versions between "<1.0.0" and ">=1.1.0"',
    ]);
    assert.match(coverageFaults(rangesOf(['<1.2.0', '>=1.1.0'])).join(), /^">=1.1.0" overlaps "<1.2.0"/);
    assert.match(coverageFaults(rangesOf(['*', '>=1.1.0'])).join(), /overlaps/);
    assert.deepEqual(coverageFaults(rangesOf(['>=1.0.0 <2.0.0'])), [
      'no row covers the versions before 1.0.0',
      'no row covers the versions from 2.0.0',
    ]);
    assert.deepEqual(coverageFaults(rangesOf(['<1.0.0 || >=1.1.0 <1.2.0', '>=1.0.0 <1.1.0 || >=1.2.0'])), []);
    assert.deepEqual(coverageFaults(rangesOf(['<1.0.0 || >=1.1.0 <1.2.0', '>=1.2.0'])), [
      'no row covers the versions between "<1.0.0 || >=1.1.0 <1.2.0" and "<1.0.0 || >=1.1.0 <1.2.0"',
    ]);
    assert.deepEqual(coverageFaults(rangesOf(['>=1.0.0', '<1.0.0'])), [
      'rows must be in the order of their first versions',
    ]);
  });
});
