import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { accessReviewSpec } from './subject-access-review.ts';

describe('a question about rights', () => {
  it('is put in an API server’s words', () => {
    const question = {
      user: 'alice',
      groups: ['devs'],
      uid: null,
      extra: { scopes: ['a_b'] },
      resource_attributes: { verb: 'list', resource: 'pods', namespace: 'x', label_selector: 'a=b' },
    };
    assert.deepEqual(accessReviewSpec(question), {
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

  it('is refused when a part of it would be lost', () => {
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
