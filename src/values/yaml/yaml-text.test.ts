import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseYaml } from './index.ts';

describe('parseYaml', () => {
  it('rounds large integers, and keeps those of 64 bits where the dialect is exact', () => {
    const text =
      '[9007199254740993, -0x20000000000001, 0400000000000000001, 1_8446744073709551615, 18446744073709551616, 12, -0]';
    const large = 18446744073709552000;
    assert.deepEqual(parseYaml(text), [[9007199254740992, -9007199254740992, 9007199254740992, large, large, 12, -0]]);
    assert.deepEqual(parseYaml(text, 'kubernetes-exact'), [
      [9007199254740993n, -9007199254740993n, 9007199254740993n, 18446744073709551615n, large, 12, -0],
    ]);
  });
});
