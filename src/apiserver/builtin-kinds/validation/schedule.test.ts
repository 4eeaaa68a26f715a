import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isTimeZone, scheduleProblem } from './schedule.ts';

describe('schedules of cron jobs', () => {
  it('are five fields of numbers, names, ranges and steps, or a word', () => {
    const good = ['* * * * *', '*/5 0-6,12 1 jan-mar MON', '0 0 ? * ?', '@daily', '@every 1h30m', '5/10 * * * *'];
    assert.deepEqual(good.map(scheduleProblem), Array(good.length).fill(undefined));
  });

  it('are refused with messages of API servers', () => {
    const bad = {
      '* * *': 'expected exactly 5 fields, found 3: [* * *]',
      '60 * * * *': 'end of range (60) above maximum (59): 60',
      '* * 0 * *': 'beginning of range (0) below minimum (1): 0',
      '5-1 * * * *': 'beginning of range (5) beyond end of range (1): 5-1',
      '*/0 * * * *': 'step of range should be a positive number: */0',
      '1-2-3 * * * *': 'too many hyphens: 1-2-3',
      '1/2/3 * * * *': 'too many slashes: 1/2/3',
      'x * * * *': 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
      '@often': 'unrecognized descriptor: @often',
    };
    for (const [schedule, problem] of Object.entries(bad)) {
      assert.equal(scheduleProblem(schedule), problem);
    }
  });

  it('are validated, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...Array.from('0123456789*/-,? @jan')) }), (text) => {
        const problem = scheduleProblem(text);
        assert.ok(problem === undefined || problem.length > 0);
      }),
    );
  });
});

describe('time zones', () => {
  it('are those that the system knows', () => {
    assert.deepEqual(['Europe/Berlin', 'UTC', 'Mars/Olympus', ''].map(isTimeZone), [true, true, false, false]);
  });
});
