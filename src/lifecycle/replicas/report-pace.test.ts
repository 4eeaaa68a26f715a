import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CHANGES_AT_ONCE, CHANGES_PER_SECOND, MAX_CHANGE_DELAY_MS, ReportPace } from './report-pace.ts';

it('changes that replicas report without end are delayed, and those of other policy servers are not', () => {
  const pace = new ReportPace();
  let atOnce = 0;
  while (pace.delayMs('tenants', 0) === 0) {
    atOnce += 1;
  }
  assert.equal(atOnce, CHANGES_AT_ONCE);
  assert.equal(pace.delayMs('tenants', 0), MAX_CHANGE_DELAY_MS);
  assert.equal(pace.delayMs('default', 0), 0);
  const later = Array.from({ length: 2 * CHANGES_PER_SECOND }, () => pace.delayMs('tenants', 1_000));
  assert.equal(later.filter((ms) => ms === 0).length, CHANGES_PER_SECOND);
});
