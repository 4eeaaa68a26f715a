import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nearestKey } from './nearest-key.ts';

describe('nearestKey', () => {
  const cases: readonly (readonly [key: string, nearest: string | undefined])[] = [
    ['deploymnts', 'deployments'],
    ['Pdos', 'pods'],
    ['jb', 'job'],
    ['jog', 'job'],
    // Two of three letters differ: another word.
    ['web', undefined],
    ['secretless', undefined],
  ];
  for (const [key, nearest] of cases) {
    it(`takes ${key} for ${nearest ?? 'no known key'}`, () => {
      assert.equal(nearestKey(key, ['deployments', 'pods', 'job', 'secret']), nearest);
    });
  }
});
