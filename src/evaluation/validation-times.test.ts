import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ValidationTimes } from './validation-times.ts';

const LIMIT_MS = 1_000;

/** Two workers, and their clock. */
class Subject {
  now = 1_000_000;
  readonly one = new ValidationTimes(undefined, () => this.now);
  readonly other = new ValidationTimes(this.one.buffer, () => this.now);

  validate(ms: number, namespace = 'tool-a', worker = this.one): void {
    worker.started('p', namespace);
    this.now += ms;
    worker.ended('p', namespace, ms);
  }

  waitMs(namespace = 'tool-a', policy = 'p'): number {
    return this.other.waitMs(policy, namespace, LIMIT_MS);
  }
}

describe('the times of validations', () => {
  it('let usual settings be validated whenever they change', () => {
    const subject = new Subject();
    for (let change = 0; change < 1_000; change += 1) {
      subject.validate(1);
      assert.equal(subject.waitMs(), 0);
      subject.now += 100;
    }
  });

  it('make a namespace wait in all workers after one validation that takes the limit, and no other one', () => {
    const subject = new Subject();
    subject.validate(LIMIT_MS);
    assert.equal(subject.waitMs(), 30_000);
    assert.deepEqual([subject.waitMs('tool-b'), subject.waitMs('tool-a', 'q')], [0, 0]);
    subject.now += 29_999;
    assert.equal(subject.waitMs(), 1);
    subject.now += 1;
    assert.equal(subject.waitMs(), 0);
  });

  it('give a namespace a sixtieth of a worker, whether its settings take the limit or less', () => {
    for (const ms of [10, 100, 499, 999, LIMIT_MS]) {
      const subject = new Subject();
      const end = subject.now + 3_600_000;
      let spent = 0;
      while (subject.now < end) {
        subject.validate(ms);
        spent += ms;
        subject.now += subject.waitMs();
      }
      const share = spent / 3_600_000;
      assert.ok(share > 1 / 70 && share < 1 / 58, `${ms} ms: ${share}`);
    }
  });

  it('do not count a validation that still runs in another worker', () => {
    const subject = new Subject();
    subject.one.started('p', 'tool-a');
    subject.now += 2 * LIMIT_MS;
    assert.equal(subject.waitMs(), 0);
    subject.one.ended('p', 'tool-a', 1);
    assert.equal(subject.waitMs(), 0);
  });

  it('count a validation whose worker was ended, once', () => {
    const subject = new Subject();
    subject.one.started('p', 'tool-a');
    subject.now += 2 * LIMIT_MS + 1;
    assert.equal(subject.waitMs(), 120_000 - 2_001 - 30_000);
    subject.now += 120_000;
    assert.equal(subject.waitMs(), 0);
  });
});
