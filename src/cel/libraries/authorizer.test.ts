import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EvaluationFailure } from '../model/value.ts';
import { AuthorizerValue, AuthorizationDecision, PathCheck, ResourceCheck } from './authorizer-values.ts';
import type { AuthorizationRequest, GroupCheck } from './authorizer-values.ts';

function recorded(): { requests: AuthorizationRequest[]; authorizer: AuthorizerValue } {
  const requests: AuthorizationRequest[] = [];
  const authorizer = new AuthorizerValue(
    { username: 'alice', groups: ['dev'] },
    {
      authorize: (request) => {
        requests.push(request);
        return { isAllowed: true, reason: 'because' };
      },
    },
  );
  return { requests, authorizer };
}

function resource(group: GroupCheck, name: string): ResourceCheck {
  const check = group.resource(name);
  assert.ok(check instanceof ResourceCheck);
  return check;
}

function decided(decision: AuthorizationDecision | EvaluationFailure): AuthorizationDecision {
  assert.ok(decision instanceof AuthorizationDecision);
  return decision;
}

describe('the authorizer', () => {
  test('receives all properties of the chain of calls', () => {
    const { requests, authorizer } = recorded();
    resource(authorizer.group('apps'), 'deployments')
      .with('subresource', 'scale')
      .with('namespace', 'shop')
      .with('name', 'web')
      .with('labelSelector', 'a=b')
      .check('update');
    const path = authorizer.path('/healthz');
    assert.ok(path instanceof PathCheck);
    assert.equal(decided(path.check('get')).answer.isAllowed, true);
    const user = { username: 'alice', groups: ['dev'] };
    assert.deepEqual(requests, [
      {
        kind: 'resource',
        user,
        verb: 'update',
        group: 'apps',
        resource: 'deployments',
        subresource: 'scale',
        namespace: 'shop',
        name: 'web',
        fieldSelector: '',
        labelSelector: 'a=b',
      },
      { kind: 'path', user, verb: 'get', path: '/healthz' },
    ]);
  });

  test('receives service accounts with their names and groups', () => {
    const { requests, authorizer } = recorded();
    const account = authorizer.serviceAccount('shop', 'builder');
    assert.ok(account instanceof AuthorizerValue);
    resource(account.group(''), 'pods').check('list');
    assert.deepEqual(requests[0]?.user, {
      username: 'system:serviceaccount:shop:builder',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop'],
    });
    assert.ok(authorizer.serviceAccount('Shop', 'builder') instanceof EvaluationFailure);
    assert.ok(authorizer.serviceAccount('shop', '-') instanceof EvaluationFailure);
  });

  test('does not allow when it throws', () => {
    const authorizer = new AuthorizerValue(
      { username: 'alice' },
      {
        authorize: () => {
          throw new Error('not reachable');
        },
      },
    );
    const { answer } = decided(resource(authorizer.group(''), 'pods').check('get'));
    assert.deepEqual(answer, { isAllowed: false, reason: '', error: 'not reachable' });
  });

  test('ends the evaluation when the host does not answer', () => {
    const failure = new EvaluationFailure('only about yourself');
    const authorizer = new AuthorizerValue({ username: 'alice' }, { authorize: () => failure });
    assert.equal(resource(authorizer.group(''), 'pods').check('get'), failure);
  });

  test('cannot be compared, as in API servers', () => {
    const { authorizer } = recorded();
    assert.ok(authorizer.compareEqual(authorizer) instanceof EvaluationFailure);
  });

  test('rejects empty paths and resources', () => {
    const { authorizer } = recorded();
    assert.ok(authorizer.path(' ') instanceof EvaluationFailure);
    assert.ok(authorizer.group('').resource('') instanceof EvaluationFailure);
  });
});
