// Every file that upstream tests its Pod Security Standards with, and what upstream's evaluator says to each of these
// pods at each level and version (pod-security/README.md).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { load } from 'js-yaml';
import { describeViolations, NEWEST_VERSION, parsePodSecuritySettings } from '../../src/engine/pod-security/index.ts';
import { evaluatePodSecurity } from '../../src/engine/pod-security/testing/evaluate-pod-security.ts';
import { filesOf, fixtures, isJudgedRight, violationsOf } from './pod-security/cases.ts';
import type { FixtureLevel } from './pod-security/fixtures.ts';

describe('the Pod Security Standards', () => {
  const levels: readonly FixtureLevel[] = ['baseline', 'restricted'];
  let count = 0;

  for (const level of levels) {
    const [passing, failing] = [filesOf(level, 'pass'), filesOf(level, 'fail')];
    count += passing.length + failing.length;

    it(`admit the ${passing.length} files that pass ${level}`, () => {
      const wrong = passing.filter((file) => !isJudgedRight(file, 'pass'));
      assert.deepEqual(wrong, []);
    });

    it(`refuse the ${failing.length} files that fail ${level}, by the check in the file's name`, () => {
      const wrong = failing.filter((file) => !isJudgedRight(file, 'fail'));
      assert.deepEqual(wrong, []);
    });

    it(`say what upstream says to every pod at ${level}, in every version`, () => {
      let asked = 0;
      for (const [number, ranges] of fixtures.expected[level].entries()) {
        for (const [from, to, verdict] of ranges) {
          for (let minor = from; minor <= to; minor++, asked++) {
            const version = minor > fixtures.newest ? 'latest' : (`v1.${minor}` as const);
            const violations = violationsOf({ level, version, number });
            const { reasons, details, text } = fixtures.verdicts[verdict]!;
            const where = `pod ${number} at ${level}:${version}`;
            assert.deepEqual(
              violations.map(({ reason }) => reason),
              reasons,
              where,
            );
            assert.deepEqual(
              violations.map(({ detail }) => detail),
              details,
              where,
            );
            assert.equal(describeViolations(violations), text, where);
          }
        }
      }
      assert.equal(asked, fixtures.pods.length * (fixtures.newest + 2));
    });
  }

  it('are tested with all files', () => {
    assert.equal(count, fixtures.source.files);
    assert.equal(`v1.${fixtures.newest}`, NEWEST_VERSION);
  });
});

describe('docs/pod-security.md', () => {
  const text = readFileSync(new URL('../../docs/pod-security.md', import.meta.url), 'utf8');
  const snippets = [...text.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, yaml = '']) => yaml);

  it('has examples with settings that are accepted', () => {
    assert.ok(snippets.length >= 3);
    for (const snippet of snippets) {
      for (const policy of Object.values(load(snippet) as Record<string, { module: string; settings: unknown }>)) {
        assert.equal(policy.module, 'builtin:pod-security');
        assert.equal(parsePodSecuritySettings(policy.settings).problems, undefined);
      }
    }
  });

  it('quotes a message as it is', () => {
    const spec = { containers: [{ name: 'a', securityContext: { privileged: true } }] };
    const message = describeViolations(evaluatePodSecurity('baseline', 'latest', {}, spec));
    assert.ok(text.includes(`violates PodSecurity "baseline:latest": ${message}`));
  });

  it('names the newest version', () => {
    assert.ok(text.includes(`The newest known version is ${NEWEST_VERSION}:`));
  });
});
