import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AdmissionTargets } from './admission-targets.ts';
import { RequestRefusal } from '../../https/index.ts';

describe('AdmissionTargets', () => {
  const targets = new AdmissionTargets();

  for (const [url, expected] of [
    ['/admit/validating.fail.exact.cluster?timeout=5s', ['admit', 'validating.fail.exact.cluster', 4_750]],
    ['/validate/kw.cap.a', ['validate', 'kw.cap.a', 10_000]],
    ['/audit/a%2Fb?timeout=300ms', ['audit', 'a/b', 250]],
    ['/validate_raw/a?x=1&timeout=99999s', ['validate_raw', 'a', 29_750]],
    ['/validate/a?timeout=soon', ['validate', 'a', 10_000]],
  ] as const) {
    it(`reads ${url}, the first time and again`, () => {
      for (const target of [targets.of(url), targets.of(url)]) {
        assert.ok(!(target instanceof RequestRefusal));
        assert.deepEqual([target.route, target.name, target.requestTimeoutMs], expected);
      }
    });
  }

  for (const [url, status] of [
    ['/', 404],
    ['/validate', 404],
    ['/mutate/a', 404],
    ['/validate/%ff', 400],
    ['/admit/No%20Bucket', 400],
    ['/admit/', 400],
  ] as const) {
    it(`refuses ${url}, the first time and again`, () => {
      for (const target of [targets.of(url), targets.of(url)]) {
        assert.ok(target instanceof RequestRefusal);
        assert.equal(target.status, status);
      }
    });
  }

  it('limits the number of cached paths', () => {
    const many = new AdmissionTargets();
    const targets = new Set(Array.from({ length: 10_000 }, (_, index) => many.of(`/validate/${index % 5_000}`)));
    // Paths that are still cached the second time give the same object.
    assert.ok(targets.size > 5_000);
    const long = `/validate/${'a'.repeat(1_000)}`;
    assert.notEqual(many.of(long), many.of(long));
    assert.equal(many.of('/validate/a'), many.of('/validate/a'));
  });
});
