import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CompileDeadline } from './compile-deadline.ts';

const SECOND = 1_000;
/** When it began, by the clock; the thread had used two seconds then. */
const BEGUN = 50 * SECOND;
const RUNNING = { seq: 1, member: 0, policy: 0, since: BEGUN };

/** Whether a compilation may go on that has used these seconds of processor time, in these seconds. */
function goesOn(used: number | undefined, elapsed: number, begun: number | undefined = 2): boolean {
  const deadline = new CompileDeadline();
  deadline.see(RUNNING, () => (begun === undefined ? undefined : begun * SECOND));
  deadline.see(RUNNING, () => 10 * SECOND);
  return deadline.isAhead(RUNNING, used === undefined ? undefined : (2 + used) * SECOND, BEGUN + elapsed * SECOND);
}

describe('a compilation after its deadline', () => {
  const cases: Record<string, [used: number | undefined, elapsed: number, goesOn: boolean]> = {
    'goes on while the machine is busy with others': [5, 60, true],
    'goes on while another process does a trial for it': [0, 40, true],
    'ends when it used its time': [20, 21, false],
    'ends when the thread hardly gets a processor': [5, 301, false],
    'ends where the system does not tell the time of a thread': [undefined, 21, false],
  };
  for (const [title, [used, elapsed, expected]] of Object.entries(cases)) {
    it(title, () => assert.equal(goesOn(used, elapsed), expected));
  }

  it('has the time of its own, not that of the one before', () => {
    const deadline = new CompileDeadline();
    deadline.see({ ...RUNNING, since: 1 }, () => 0);
    deadline.see(undefined, () => 15 * SECOND);
    deadline.see(RUNNING, () => 15 * SECOND);
    assert.ok(deadline.isAhead(RUNNING, 30 * SECOND, BEGUN + 60 * SECOND));
    assert.ok(!deadline.isAhead({ ...RUNNING, since: BEGUN + 1 }, 30 * SECOND, BEGUN + 60 * SECOND));
  });
});
