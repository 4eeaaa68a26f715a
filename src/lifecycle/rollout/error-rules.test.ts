import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ApiError, ClusterError } from '../../cluster/index.ts';
import { type ErrorKind, FIRST_REPORTED_FAILURE, outcomeOfError, Waiting } from '../../runtime/index.ts';
import { afterError, ERROR_RULES, type FallibleStep } from './error-rules.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/runtime.md'), 'utf8');

/** The order of the columns. */
const ERRORS: readonly (readonly [kind: ErrorKind, error: unknown])[] = [
  ['conflict', new ApiError(409, 'Conflict', 'changed since')],
  ['forbidden', new ApiError(403, 'Forbidden', 'not you')],
  ['refused', new ApiError(422, 'Invalid', 'not this')],
  ['unavailable', new ClusterError('unreachable', 'nobody answers')],
];

const WORDS = { end: 'ends', 'go on': 'goes on', 'fail the revision': 'fails the revision' } as const;

/** The cells of a row of the page. */
function documented(step: string): readonly string[] {
  const row = page.split('\n').find((line) => new RegExp(`^\\|[^|]*\`${step}\``).test(line)) ?? '';
  return row
    .split('|')
    .slice(2, -1)
    .map((cell) => cell.trim());
}

/** What happens after an error of a step, in the words of the page. */
function text(step: FallibleStep, error: unknown): string {
  const { effect, failure } = afterError(step, error);
  const { failure: shown, queue, event } = outcomeOfError(failure, undefined, FIRST_REPORTED_FAILURE);
  assert.equal(queue.action, 'backoff');
  assert.equal(event?.reason, error instanceof ApiError && error.code === 409 ? undefined : shown?.reason);
  assert.equal(shown?.message, (error as Error).message);
  return effect === 'fail the revision'
    ? `${WORDS[effect]}: ${shown.reason}`
    : `${WORDS[effect]}: ${shown.state}, ${shown.reason}`;
}

describe('what follows an error of a step of a policy', () => {
  for (const step of Object.keys(ERROR_RULES) as FallibleStep[]) {
    it(`${step}: as docs/runtime.md says`, () => {
      assert.deepEqual(
        ERRORS.map(([, error]) => text(step, error)),
        documented(step),
      );
    });
  }

  it('is what the error itself says, where it says so', () => {
    const waiting = new Waiting('SchemaReplaced', 30_000);
    assert.deepEqual(afterError('rollBack', waiting), { effect: 'end', failure: waiting });
  });
});
