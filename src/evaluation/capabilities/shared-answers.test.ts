import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ANSWER_MS, FAILURE_MS, MAX_ANSWERS, MAX_ANSWERS_LENGTH, NotBegun, SharedAnswers } from './shared-answers.ts';

const never = new AbortController().signal;

/** Answers whose time a test sets. */
function setUp() {
  const state = { now: 0, calls: 0 };
  const answers = new SharedAnswers(() => state.now);
  const get = (key: string, text = key, signal = never): Promise<string> =>
    answers.get(
      key,
      async () => {
        state.calls += 1;
        if (text.startsWith('fail')) {
          throw new Error(text);
        }
        return text;
      },
      signal,
    );
  return { state, answers, get };
}

describe('SharedAnswers', () => {
  it('keeps an answer for a minute, and an error for a moment', async () => {
    const { state, get } = setUp();
    assert.deepEqual([await get('a', '1'), await get('a', '2')], ['1', '1']);
    state.now = ANSWER_MS;
    assert.equal(await get('a', '3'), '3');
    await assert.rejects(get('b', 'fail 1'), /fail 1/);
    await assert.rejects(get('b', 'there now'), /fail 1/);
    state.now += FAILURE_MS;
    assert.equal(await get('b', 'there now'), 'there now');
    assert.equal(state.calls, 4);
  });

  it('shares a task, which goes on without callers for the next one', async () => {
    const { answers } = setUp();
    const { promise, resolve } = Promise.withResolvers<string>();
    let begun = 0;
    const work = async (): Promise<string> => {
      begun += 1;
      return await promise;
    };
    const ended = new AbortController();
    const [first, second] = [answers.get('a', work, ended.signal), answers.get('a', work, ended.signal)];
    ended.abort(new Error('no time'));
    await assert.rejects(first, /no time/);
    await assert.rejects(second, /no time/);
    const third = answers.get('a', work, never);
    resolve('done');
    assert.equal(await third, 'done');
    assert.equal(begun, 1);
  });

  it('says whether a caller waits, and does not keep the error of a task that was not begun', async () => {
    const { answers } = setUp();
    const ended = new AbortController();
    const asked: boolean[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const work = async (isWanted: () => boolean): Promise<string> => {
      asked.push(isWanted());
      await promise;
      asked.push(isWanted());
      throw new NotBegun('nobody waits');
    };
    const first = answers.get('a', work, ended.signal);
    await new Promise(setImmediate);
    ended.abort(new Error('no time'));
    await assert.rejects(first, /no time/);
    resolve();
    await new Promise(setImmediate);
    assert.deepEqual(asked, [true, false]);
    assert.equal(await answers.get('a', async () => 'again', never), 'again');
  });

  it('limits the number and the length of answers', async () => {
    const { state, get } = setUp();
    for (let index = 0; index <= MAX_ANSWERS; index += 1) {
      await get(`${index}`);
    }
    await get('1', 'kept');
    const { calls } = state;
    await get('0', 'evicted');
    assert.equal(state.calls, calls + 1);
    await get('large', 'x'.repeat(MAX_ANSWERS_LENGTH + 1));
    await get('large', 'y');
    assert.equal(state.calls, calls + 3, 'an answer that is too large is not kept');
  });
});
