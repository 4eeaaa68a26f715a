import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { accessReviewSpec } from './subject-access-review.ts';

describe('an access review', () => {
  it('is translated to the spec of a SubjectAccessReview', () => {
    const review = {
      user: 'alice',
      groups: ['devs'],
      uid: null,
      extra: { scopes: ['a_b'] },
      resource_attributes: { verb: 'list', resource: 'pods', namespace: 'x', label_selector: 'a=b' },
    };
    assert.deepEqual(accessReviewSpec(review), {
      user: 'alice',
      groups: ['devs'],
      extra: { scopes: ['a_b'] },
      resourceAttributes: { verb: 'list', resource: 'pods', namespace: 'x', labelSelector: { rawSelector: 'a=b' } },
    });
    assert.deepEqual(accessReviewSpec({ user: 'a', non_resource_attributes: { path: '/metrics', verb: 'get' } }), {
      user: 'a',
      nonResourceAttributes: { path: '/metrics', verb: 'get' },
    });
  });

  it('is refused with fields that cannot be translated', () => {
    assert.throws(
      () => accessReviewSpec({ username: 'a' }),
      /subject_access_review\.username: unknown; expected one of user,/,
    );
    assert.throws(
      () => accessReviewSpec({ user: 'a', resource_attributes: { verbs: ['get'] } }),
      /subject_access_review\.resource_attributes\.verbs: unknown/,
    );
    assert.throws(() => accessReviewSpec({ resource_attributes: 'pods' }), /expected an object/);
    assert.throws(() => accessReviewSpec(JSON.parse('{"__proto__": {}}')), /__proto__: unknown/);
  });
});
