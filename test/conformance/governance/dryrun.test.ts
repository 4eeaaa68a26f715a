import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dryrunCases, dryrunOutput } from './dryrun-cases.ts';

describe('portcullis dryrun prints what Open Cluster Management prints', { concurrency: 2 }, () => {
  for (const one of dryrunCases()) {
    it(`for ${one.name}`, async () => {
      const output = await dryrunOutput(one);
      if (one.error === undefined) {
        assert.equal(output, one.output);
      } else {
        assert.match(output, /^# Diffs:\n# Compliance messages:\nNonCompliant; violation - /);
        assert.ok(output.includes(one.error), output);
      }
    });
  }
});
