import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Clock } from './clock.ts';
import { ManualClock, settle } from './testing/manual-clock.ts';
import { RETRY_JITTER, WorkQueue } from './work-queue.ts';
import type { WorkQueueOptions } from './work-queue.ts';

function queueWith(options: WorkQueueOptions = {}): { queue: WorkQueue; clock: ManualClock } {
  const clock = new ManualClock();
  return { queue: new WorkQueue({ clock, random: () => 0, ...options }), clock };
}

/** Takes all ready items. */
async function takeAll(queue: WorkQueue): Promise<string[]> {
  const taken: string[] = [];
  while (queue.depth > 0) {
    const item = await queue.take();
    assert.ok(item !== undefined);
    taken.push(item);
  }
  return taken;
}

describe('WorkQueue', () => {
  it('contains an item once, however often it is added', async () => {
    const { queue } = queueWith();
    queue.add('a');
    queue.add('b');
    queue.add('a');
    assert.deepEqual(await takeAll(queue), ['a', 'b']);
  });

  it('gives an item to one taker at a time, and again when it was added meanwhile', async () => {
    const { queue } = queueWith();
    queue.add('a');
    assert.equal(await queue.take(), 'a');
    queue.add('a');
    queue.add('a');
    assert.equal(queue.depth, 0);
    queue.done('a');
    assert.deepEqual(await takeAll(queue), ['a']);
    queue.done('a');
    assert.equal(queue.depth, 0);
  });

  it('returns higher priorities first, and keeps the highest of an item', async () => {
    const { queue } = queueWith();
    queue.add('low', { priority: -1 });
    queue.add('first');
    queue.add('second');
    queue.add('raised', { priority: -2 });
    queue.add('raised', { priority: 5 });
    queue.add('first', { priority: -9 });
    assert.deepEqual(await takeAll(queue), ['raised', 'first', 'second', 'low']);
  });

  it('lets owners take turns, also those that come later', async () => {
    const { queue } = queueWith({ ownerOf: (item) => item.split('/')[1] && item.split('/')[0] });
    for (const item of ['a/1', 'a/2', 'a/3', 'a/4']) {
      queue.add(item);
    }
    assert.equal(await queue.take(), 'a/1');
    for (const item of ['b/1', 'b/2', 'own', 'other']) {
      queue.add(item);
    }
    assert.deepEqual(await takeAll(queue), ['a/2', 'b/1', 'own', 'other', 'a/3', 'b/2', 'a/4']);
    queue.add('b/3');
    queue.add('a/5');
    assert.deepEqual(await takeAll(queue), ['b/3', 'a/5']);
  });

  it('delays an item until the earliest requested time', async () => {
    const { queue, clock } = queueWith();
    queue.add('a', { afterMs: 100 });
    queue.add('a', { afterMs: 50 });
    queue.add('a', { afterMs: 200 });
    assert.equal(queue.delayed, 1);
    clock.advance(49);
    assert.equal(queue.depth, 0);
    clock.advance(1);
    assert.deepEqual(await takeAll(queue), ['a']);
    assert.equal(clock.pending, 0);
  });

  it('returns a delayed item at once when it is added without a delay', async () => {
    const { queue } = queueWith();
    queue.add('a', { afterMs: 1000 });
    queue.add('a');
    assert.deepEqual(await takeAll(queue), ['a']);
    assert.equal(queue.delayed, 0);
  });

  it('wakes a waiting taker', async () => {
    const { queue, clock } = queueWith();
    const taken = [queue.take(), queue.take()];
    queue.add('a');
    queue.add('b', { afterMs: 10 });
    clock.advance(10);
    assert.deepEqual(await Promise.all(taken), ['a', 'b']);
  });

  it('doubles the delay with every retry up to the cap, and resets it after forget', () => {
    const { queue, clock } = queueWith({ baseMs: 10, capMs: 50 });
    const waits = Array.from({ length: 5 }, () => {
      queue.retry('a');
      const since = clock.now();
      while (queue.depth === 0) {
        clock.advance(1);
      }
      void queue.take();
      queue.done('a');
      return clock.now() - since;
    });
    assert.deepEqual(waits, [10, 20, 40, 50, 50]);
    assert.equal(queue.failures('a'), 5);
    queue.forget('a');
    assert.equal(queue.failures('a'), 0);
  });

  it('adds jitter to each delay', () => {
    const { queue, clock } = queueWith({ baseMs: 1000, random: () => 1 });
    queue.retry('a');
    clock.advance(1000 * (1 - RETRY_JITTER) - 1);
    assert.equal(queue.depth, 0);
    clock.advance(1);
    assert.equal(queue.depth, 1);
  });

  it('limits the rate of retries over all items', () => {
    const { queue, clock } = queueWith({ baseMs: 0, rate: { perSecond: 10, burst: 2 } });
    for (const item of ['a', 'b', 'c', 'd', 'e']) {
      queue.retry(item);
    }
    assert.equal(queue.depth, 2);
    clock.advance(100);
    assert.equal(queue.depth, 3);
    clock.advance(200);
    assert.equal(queue.depth, 5);
  });

  it('hands out ready items on shutdown, and rejects delayed and new ones', async () => {
    const { queue, clock } = queueWith();
    queue.add('worked-on');
    await queue.take();
    queue.add('worked-on');
    queue.add('ready');
    queue.add('delayed', { afterMs: 10 });
    let isDrained = false;
    void queue.shutDown().then(() => (isDrained = true));
    queue.add('late');
    clock.advance(100);
    assert.deepEqual(await takeAll(queue), ['ready']);
    queue.done('ready');
    await settle();
    assert.equal(isDrained, false);
    const last = queue.take();
    queue.done('worked-on');
    assert.equal(await last, 'worked-on');
    assert.equal(isDrained, false);
    queue.done('worked-on');
    await settle();
    assert.equal(isDrained, true);
    assert.equal(await queue.take(), undefined);
    assert.equal(clock.pending, 0);
  });

  it('releases waiting takers on shutdown', async () => {
    const { queue } = queueWith();
    const taken = queue.take();
    await queue.shutDown();
    assert.equal(await taken, undefined);
  });

  it('calls its observer', async () => {
    const seen: string[] = [];
    const { queue, clock } = queueWith({
      baseMs: 1,
      observer: {
        added: () => seen.push('added'),
        taken: (seconds) => seen.push(`taken ${seconds}`),
        done: (seconds) => seen.push(`done ${seconds}`),
        retried: () => seen.push('retried'),
      },
    });
    queue.add('a', { afterMs: 500 });
    queue.add('a', { afterMs: 400 });
    clock.advance(1400);
    await queue.take();
    clock.advance(250);
    assert.equal(queue.longestRunningMs, 250);
    assert.equal(queue.unfinishedMs, 250);
    queue.retry('a');
    queue.done('a');
    assert.deepEqual(seen, ['added', 'taken 1', 'retried', 'added', 'done 0.25']);
    assert.equal(queue.longestRunningMs, 0);
  });

  it('hands out an item on shutdown whose time has come but whose timer has not fired', async () => {
    let now = 0;
    const late: Clock = { now: () => now, date: () => now, after: () => () => undefined };
    const queue = new WorkQueue({ clock: late });
    const taking = queue.take();
    queue.add('a', { afterMs: 5 });
    now = 6;
    const ended = queue.shutDown();
    assert.equal(await taking, 'a');
    queue.done('a');
    await ended;
  });

  it('equals its model: no item is lost, doubled or early', async () => {
    const item = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const command = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          op: fc.constant('add'),
          item,
          priority: fc.integer({ min: -2, max: 2 }),
          afterMs: fc.constantFrom(0, 0, 0, 5, 10, 20),
        }),
      },
      { weight: 3, arbitrary: fc.record({ op: fc.constant('take') }) },
      { weight: 3, arbitrary: fc.record({ op: fc.constant('done'), item }) },
      { weight: 2, arbitrary: fc.record({ op: fc.constant('pass'), ms: fc.integer({ min: 1, max: 12 }) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 60 }), async (commands) => {
        const { queue, clock } = queueWith();
        const model = new QueueModel();
        for (const step of commands as { op: string; item: string; priority: number; afterMs: number; ms: number }[]) {
          if (step.op === 'add') {
            queue.add(step.item, { priority: step.priority, afterMs: step.afterMs });
            model.add(step.item, step.priority, clock.now() + step.afterMs, clock.now());
          } else if (step.op === 'take') {
            const expected = model.candidates(clock.now());
            assert.equal(queue.depth, model.ready(clock.now()).length);
            if (expected.length > 0) {
              const taken = await queue.take();
              assert.ok(taken !== undefined && expected.includes(taken), `${taken} is none of ${expected.join()}`);
              model.take(taken);
            }
          } else if (step.op === 'done') {
            queue.done(step.item);
            model.done(step.item);
          } else {
            clock.advance(step.ms);
          }
          assert.equal(queue.active, model.active.size);
        }
        // Every added item has been handed out.
        clock.advance(1000);
        for (const active of model.active) {
          queue.done(active);
          model.done(active);
        }
        assert.deepEqual((await takeAll(queue)).sort(), model.ready(clock.now()).sort());
      }),
      { numRuns: 300 },
    );
  });
});

/** A simple model of the queue. The order among equal priorities is free. */
class QueueModel {
  readonly waiting = new Map<string, { priority: number; readyAt: number }>();
  readonly again = new Map<string, { priority: number; readyAt: number }>();
  readonly active = new Set<string>();

  add(item: string, priority: number, readyAt: number, _now: number): void {
    const target = this.active.has(item) ? this.again : this.waiting;
    const old = target.get(item) ?? { priority, readyAt };
    target.set(item, { priority: Math.max(old.priority, priority), readyAt: Math.min(old.readyAt, readyAt) });
  }

  ready(now: number): string[] {
    return [...this.waiting].filter(([, { readyAt }]) => readyAt <= now).map(([item]) => item);
  }

  candidates(now: number): string[] {
    const ready = this.ready(now);
    const highest = Math.max(...ready.map((item) => this.waiting.get(item)!.priority));
    return ready.filter((item) => this.waiting.get(item)!.priority === highest);
  }

  take(item: string): void {
    this.waiting.delete(item);
    this.active.add(item);
  }

  done(item: string): void {
    if (this.active.delete(item)) {
      const again = this.again.get(item);
      if (again !== undefined) {
        this.again.delete(item);
        this.waiting.set(item, again);
      }
    }
  }
}
