import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../cluster/index.ts';
import { parseReview, reviewResponse } from './own-kinds-review.ts';

const HOSTILE = 'evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt';
const INERT = 'evil\u{fffd}[2J\u{fffd}]8;;a:b\u{fffd}2J\u{fffd}txt';

describe('reviewResponse', () => {
  it('has texts that control no terminal', () => {
    const review = parseReview(Buffer.from(JSON.stringify({ request: { uid: 'a' } })));
    const error = new ApiError(403, 'Forbidden', HOSTILE);
    const { response } = JSON.parse(reviewResponse(review, { error, warnings: [HOSTILE] })) as {
      readonly response: { readonly status: { readonly message: string }; readonly warnings: readonly string[] };
    };
    assert.deepEqual([response.status.message, ...response.warnings], [INERT, INERT]);
  });
});
