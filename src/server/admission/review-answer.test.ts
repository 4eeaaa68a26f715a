import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { reviewAnswer } from './review-answer.ts';

const REVIEW = '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true}}';
const RESPONSE = { kind: 'response', response: '{"allowed":true}' } as const;

describe('the answer to a review', () => {
  for (const [route, result, status, body] of [
    ['validate', RESPONSE, 200, REVIEW],
    ['audit', RESPONSE, 200, REVIEW],
    ['admit', RESPONSE, 200, REVIEW],
    ['validate_raw', RESPONSE, 200, '{"response":{"allowed":true}}'],
    ['validate', { kind: 'unknown-target' }, 404, '{"message":"unknown policy: X","status":404}'],
    ['admit', { kind: 'unknown-target' }, 404, '{"message":"unknown bucket: X","status":404}'],
    ['validate', { kind: 'failed' }, 500, '{"message":"Something went wrong","status":500}'],
    [
      'validate',
      { kind: 'refused', code: 'review-too-large', message: 'too large' },
      413,
      '{"message":"too large","status":413}',
    ],
    [
      'validate',
      { kind: 'refused', code: 'review-malformed', message: 'not JSON' },
      400,
      '{"message":"not JSON","status":400}',
    ],
    [
      'audit',
      { kind: 'refused', code: 'review-wrong-shape', message: 'shape' },
      422,
      '{"message":"shape","status":422}',
    ],
    ['admit', { kind: 'refused', code: 'nested-too-deep', message: 'deep' }, 422, '{"message":"deep","status":422}'],
  ] as const) {
    it(`of /${route} is ${status} for ${result.kind}${'code' in result ? ` (${result.code})` : ''}`, () => {
      assert.deepEqual(reviewAnswer({ route, name: 'X' }, result), { status, body });
    });
  }
});
