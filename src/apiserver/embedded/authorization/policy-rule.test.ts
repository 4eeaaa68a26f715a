import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { describeRules, missingRules, ruleAllows, rulesOf } from './policy-rule.ts';
import type { PolicyRule } from './policy-rule.ts';

const some = (...values: readonly string[]) => fc.uniqueArray(fc.constantFrom(...values), { maxLength: 3 });
const verbs = some('get', 'list', '*');
const none = fc.constant([]);
// A rule never has both resources and paths, because API servers reject such rules.
const rules = fc.array(
  fc.oneof(
    fc.record<PolicyRule>({
      verbs,
      apiGroups: some('', 'apps', '*'),
      resources: some('pods', 'pods/status', '*/status', '*'),
      resourceNames: some('a', 'b'),
      nonResourceURLs: none,
    }),
    fc.record<PolicyRule>({
      verbs,
      apiGroups: none,
      resources: none,
      resourceNames: none,
      nonResourceURLs: some('/a', '/a/*', '/a/b', '*'),
    }),
  ),
  { maxLength: 3 },
);
const user = { username: 'u', groups: [] };

describe('policy rules', () => {
  it('that cover others allow all requests that those allow', () => {
    const asked = fc.oneof(
      fc.record({
        verb: fc.constantFrom('get', 'list', 'delete'),
        group: fc.constantFrom('', 'apps', 'batch'),
        resource: fc.constantFrom('pods', 'jobs'),
        subresource: fc.constantFrom('', 'status', 'scale'),
        name: fc.constantFrom('', 'a', 'c'),
      }),
      fc.record({ verb: fc.constantFrom('get', 'post'), path: fc.constantFrom('/a', '/a/b', '/c') }),
    );
    fc.assert(
      fc.property(rules, rules, asked, (held, wanted, what) => {
        const attributes = { user, ...what };
        const isWanted = wanted.some((rule) => ruleAllows(rule, attributes));
        const isHeld = held.some((rule) => ruleAllows(rule, attributes));
        return missingRules(held, wanted).length > 0 || !isWanted || isHeld;
      }),
    );
  });

  it('cover themselves', () => {
    fc.assert(fc.property(rules, (all) => missingRules(all, all).length === 0));
  });

  it('are read from anything', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const object = { apiVersion: 'v1', kind: 'X', metadata: {}, rules: value };
        return rulesOf(object).every((rule) => !ruleAllows(rule, { user, verb: 'never', path: '/never' }));
      }),
    );
  });

  it('are described with the verbs of one resource together', () => {
    const rule = (verb: string, resource: string): PolicyRule => ({
      verbs: [verb],
      apiGroups: [''],
      resources: [resource],
      resourceNames: [],
      nonResourceURLs: [],
    });
    assert.deepEqual(describeRules([rule('get', 'secrets'), rule('get', 'pods'), rule('list', 'secrets')]), [
      '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
    ]);
  });
});
