import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { worstCompliance } from './worst-compliance.ts';

describe('the compliance of templates or clusters together', () => {
  for (const [states, expected] of [
    [['Compliant', 'Compliant'], 'Compliant'],
    [['Compliant', 'Pending'], 'Pending'],
    [['Pending', 'NonCompliant', undefined], 'NonCompliant'],
    [['Pending', undefined], 'Pending'],
    [['Compliant', undefined], undefined],
  ] as const) {
    it(`of ${states.map(String).join(', ')} is ${String(expected)}`, () => {
      assert.equal(worstCompliance(states), expected);
    });
  }
});
