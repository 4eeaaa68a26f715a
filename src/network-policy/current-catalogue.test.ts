import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { builtinCatalogue, Catalogue } from '../engine/network-policy/index.ts';
import type { Clock } from '../runtime/index.ts';
import { CurrentCatalogue } from './current-catalogue.ts';

const OTHER = new Catalogue([]);

/** A clock that the test advances. */
class TestClock implements Clock {
  #now = 0;
  readonly #timers = new Map<() => void, number>();

  now(): number {
    return this.#now;
  }

  date(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    this.#timers.set(callback, this.#now + ms);
    return () => void this.#timers.delete(callback);
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const [callback, at] of this.#timers) {
      if (at <= this.#now) {
        this.#timers.delete(callback);
        callback();
      }
    }
  }
}

/** A catalogue whose attempts to load are answered by the test. */
function scene() {
  const clock = new TestClock();
  const attempts: PromiseWithResolvers<Catalogue>[] = [];
  const lines: string[] = [];
  let changes = 0;
  const catalogue = new CurrentCatalogue({
    load: () => {
      const attempt = Promise.withResolvers<Catalogue>();
      attempts.push(attempt);
      return attempt.promise;
    },
    onChange: () => {
      changes += 1;
    },
    log: pino({}, { write: (line) => void lines.push(line) }),
    clock,
  });
  return { catalogue, clock, attempts, lines, changes: () => changes };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the current catalogue', () => {
  it('is the builtin one without another', async () => {
    const options = { onChange: () => assert.fail(), log: pino({ level: 'silent' }) };
    const catalogue = new CurrentCatalogue(options);
    await catalogue.start(new AbortController().signal);
    assert.deepEqual([catalogue.value, catalogue.isMissing], [builtinCatalogue(), false]);
  });

  it('is there before statuses are computed', async () => {
    const { catalogue, attempts, changes } = scene();
    const started = catalogue.start(new AbortController().signal);
    attempts[0]?.resolve(OTHER);
    await started;
    await settled();
    assert.deepEqual([catalogue.value, catalogue.isMissing, changes()], [OTHER, false, 0]);
  });

  it('is the builtin one while the other cannot be loaded, which is tried again', async () => {
    const { catalogue, attempts, clock, lines, changes } = scene();
    const started = catalogue.start(new AbortController().signal);
    attempts[0]?.reject(new Error('the registry is down'));
    await started;
    assert.deepEqual([catalogue.value, catalogue.isMissing], [builtinCatalogue(), true]);
    assert.match(lines.join(''), /the registry is down.*the builtin one counts/);
    await settled();
    clock.advance(5_000);
    await settled();
    attempts[1]?.resolve(OTHER);
    await settled();
    assert.deepEqual([catalogue.value, catalogue.isMissing, changes(), attempts.length], [OTHER, false, 1, 2]);
  });

  it('does not keep statuses waiting for a registry that does not answer', async () => {
    const { catalogue, attempts, clock, changes } = scene();
    const started = catalogue.start(new AbortController().signal);
    clock.advance(15_000);
    await started;
    assert.equal(catalogue.isMissing, true);
    attempts[0]?.resolve(OTHER);
    await settled();
    assert.deepEqual([catalogue.value, changes()], [OTHER, 1]);
  });

  it('is not loaded any more once it is stopped', async () => {
    const { catalogue, attempts, clock, lines } = scene();
    const stop = new AbortController();
    const started = catalogue.start(stop.signal);
    stop.abort();
    attempts[0]?.reject(new Error('aborted'));
    await started;
    clock.advance(3_600_000);
    await settled();
    assert.deepEqual([attempts.length, lines], [1, []]);
  });
});
