import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { specCases } from './spec-case.ts';
import { EXCLUSIONS, exclusionOf, reasonNotToRun } from './spec-exclusions.ts';
import { runSpecCase } from './spec-run.ts';

describe('the conformance tests of the CEL specification', () => {
  const cases = specCases();

  for (const suite of new Set(cases.map((test) => test.suite))) {
    const run = cases.filter((test) => test.suite === suite && reasonNotToRun(test) === undefined);
    if (run.length > 0) {
      it(`passes all ${run.length} of ${suite}`, () => {
        const failed = run.flatMap((test) => {
          const difference = runSpecCase(test);
          return difference === undefined ? [] : [`${test.section}/${test.name}: ${test.expression}: ${difference}`];
        });
        assert.deepEqual(failed, []);
      });
    }
  }

  it('excludes only existing tests', () => {
    for (const { suite, section, names } of EXCLUSIONS) {
      const inSuite = cases.filter((test) => test.suite === suite && (section ?? test.section) === test.section);
      assert.ok(inSuite.length > 0, `${suite}/${section}`);
      for (const name of names ?? []) {
        assert.ok(
          inSuite.some((test) => test.name === name),
          `${suite}/${section}/${name}`,
        );
      }
    }
  });

  it('excludes no test that would pass, except those about protobuf', () => {
    const passing = cases.filter(
      (test) => !test.needsProtobuf && exclusionOf(test)?.names !== undefined && runSpecCase(test) === undefined,
    );
    assert.deepEqual(
      passing.map(({ suite, name }) => `${suite}/${name}`),
      [],
    );
  });
});
