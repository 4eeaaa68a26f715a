import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NamespaceQuestions } from './namespace-questions.ts';

const QUESTION = JSON.stringify({ api_version: 'v1', kind: 'Namespace', name: 'shop', disable_cache: false });

describe('questions about namespaces', () => {
  const asked: string[] = [];
  const questions = new NamespaceQuestions({
    request: (capability) => {
      asked.push(capability);
      return '{}';
    },
    revisionOf: () => '1',
    inventory: () => '[]',
  });

  it('of the table are noted, and answered with an error', () => {
    questions.begin(null);
    assert.throws(() => questions.request('kubernetes/get_resource', QUESTION), /namespace shop are not known/);
    assert.equal(questions.unanswered, 'shop');
    assert.deepEqual(asked, []);
    questions.begin('Cannot find it');
    assert.equal(questions.unanswered, undefined);
    assert.throws(() => questions.request('kubernetes/get_resource', QUESTION), /^Error: Cannot find it$/);
  });

  it('of guests are answered', () => {
    questions.begin(null);
    questions.isGuestRunning = true;
    assert.equal(questions.request('kubernetes/get_resource', QUESTION), '{}');
    assert.equal(questions.unanswered, undefined);
    assert.deepEqual(asked, ['kubernetes/get_resource']);
  });
});
