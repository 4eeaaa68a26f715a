import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseSettings, PolicyEnvironments } from '../index.ts';
import { lintPolicy } from './lint-policy.ts';

const environments = new PolicyEnvironments({ hasWholeRequest: true });

function findingsOf(expression: string): readonly string[] {
  const { policy } = parseSettings(
    { mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }] },
    environments,
  );
  assert.ok(policy);
  return lintPolicy(policy.compiled, environments, { rules: [] }).map(
    ({ isError, place }) => `${isError === true ? 'error' : 'warning'} ${place?.line}:${place?.column}`,
  );
}

describe('mutations of a policy without rules', () => {
  it('are checked for objects of any kind, with the place of the mistake', () => {
    assert.deepEqual(findingsOf("[JSONPatch{op: 'multiply', path: '/spec'}]"), ['error 1:2']);
    assert.deepEqual(findingsOf("[\n  JSONPatch{op: 'add', path: 'metadata/labels', value: {}}]"), ['error 2:3']);
    assert.deepEqual(findingsOf("[JSONPatch{op: 'add', path: '/spec/anything/else', value: 1}]"), []);
  });
});
