// Containerfile. test/cli/install-image.full.test.ts builds it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { STEPS } from './containerfile.ts';

describe('the image', () => {
  it('runs as a user other than root, by a numeric id that Kubernetes can check', () => {
    assert.deepEqual(
      STEPS.filter(({ instruction }) => instruction === 'USER').map(({ text }) => text),
      ['65532:65532'],
    );
  });

  it('has no base image but Node', () => {
    const bases = STEPS.filter(({ instruction }) => instruction === 'FROM').map(({ text }) => text.split(' ')[0] ?? '');
    assert.ok(bases.every((base) => /^node:24(-\w+)?$/.test(base)));
  });
});
