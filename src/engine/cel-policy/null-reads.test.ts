import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { admissionRequest, parseSettings, PolicyEnvironments } from './index.ts';

const environments = new PolicyEnvironments({ hasWholeRequest: true });

const DELETION = admissionRequest({ operation: 'DELETE', oldObject: { object: { a: 1 } } });

const unused = (): never => assert.fail('these expressions read nothing but the request');
const NO_SOURCES = {
  params: { get: unused, list: unused, isServed: unused, isNamespaced: unused },
  namespaces: { get: unused },
  authorizer: { authorize: unused },
};

/** Expressions that fail while `object` is null, whatever else the request is. */
const FAILING = [
  'object.spec.x == 1',
  'object["spec"] == 1',
  'has(object.metadata.labels)',
  '!(object.a in [1, 2])',
  '[object.a].size() == 1',
  '{"a": object.a}.size() == 1',
  'object.a == 1 ? true : true',
  'object.list.exists(x, x == 1)',
  'optional.of(object.a).hasValue()',
  'optional.of(object.a).orValue(1) == 1',
  'variables.first == 1',
  'variables.second == 1',
];

/** Expressions that do not fail then, or not for each request. */
const OTHERS = [
  'true',
  'has(object.metadata)',
  'object == null',
  'object.?spec.hasValue()',
  'object.a == 1 || true',
  'false && object.a == 1',
  'true ? true : object.a == 1',
  '[].all(x, object.a == x)',
  'optional.of(1).orValue(object.a) == 1',
  'optional.of(1).or(optional.of(object.a)).hasValue()',
  'oldObject.object.a == 1',
  'variables.harmless == 1',
];

const VARIABLES = [
  { name: 'first', expression: 'object.a' },
  { name: 'second', expression: 'variables.first + 1' },
  { name: 'harmless', expression: '1' },
];

describe('nullReads', () => {
  const policyOf = (expression: string): NonNullable<ReturnType<typeof parseSettings>['policy']> => {
    const { policy, problems } = parseSettings({ variables: VARIABLES, validations: [{ expression }] }, environments);
    return policy ?? assert.fail(JSON.stringify(problems));
  };

  for (const expression of FAILING) {
    it(`finds ${expression}, which fails without an object`, () => {
      const policy = policyOf(expression);
      assert.deepEqual(policy.nullReads, [{ variable: 'object', field: 'validations[0].expression' }]);
      const verdict = policy.evaluate(DELETION, NO_SOURCES);
      assert.equal(verdict.accepted, false);
      assert.match(verdict.message ?? '', /resulted in error/);
    });
  }

  for (const expression of OTHERS) {
    it(`does not find ${expression}`, () => {
      assert.deepEqual(
        policyOf(expression).nullReads.filter(({ variable }) => variable === 'object'),
        [],
      );
    });
  }
});
