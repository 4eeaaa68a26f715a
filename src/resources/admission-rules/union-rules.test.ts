import type { GroupVersionResource } from '../resource-type.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MatchRule } from './match-rule.ts';
import { ruleMatches } from './rule-match.ts';
import type { RuleRequest } from './rule-match.ts';
import { RuleSet } from './rule-set.ts';
import { randomOf } from './testing/random-rules.ts';
import { unionRules } from './union-rules.ts';

const ROUNDS = 1_000;

type Request = readonly [RuleRequest, GroupVersionResource];

function isAny(rules: readonly MatchRule[], [request, resource]: Request): boolean {
  return rules.some((rule) => ruleMatches(rule, request, resource));
}

function rule(fields: Partial<MatchRule>): MatchRule {
  return { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], scope: '*', ...fields };
}

test('a union matches exactly the requests that any of the rules matches', () => {
  const random = randomOf(7);
  for (let round = 0; round < ROUNDS; round++) {
    const rules = random.rules(6);
    for (const keepsOrder of [false, true]) {
      const union = unionRules(rules, { keepsOrder });
      for (let request = 0; request < 20; request++) {
        const request = random.request();
        assert.equal(isAny(union, request), isAny(rules, request), JSON.stringify({ rules, union, request }));
      }
      assert.ok(union.length <= rules.length);
    }
  }
});

test('a union is the same for the same rules in any order, and its own union', () => {
  const random = randomOf(8);
  for (let round = 0; round < ROUNDS; round++) {
    const rules = random.rules(6);
    const union = unionRules(rules);
    assert.deepEqual(unionRules(rules.toReversed()), union);
    assert.deepEqual(unionRules(union), union);
  }
});

test('with keepsOrder, the first rule that matches a request stays the first', () => {
  const random = randomOf(9);
  for (let round = 0; round < ROUNDS; round++) {
    const rules = random.rules(6);
    const union = unionRules(rules, { keepsOrder: true });
    const request = random.request();
    const firstOf = (list: readonly MatchRule[]): readonly MatchRule[] =>
      unionRules(list.filter((one) => ruleMatches(one, ...request)).slice(0, 1));
    assert.deepEqual(firstOf(union), firstOf(rules));
  }
});

test('rules that include one another, or differ in one dimension, are merged', () => {
  const tenants = Array.from({ length: 3_500 }, (_, index) => rule({ resources: ['pods', `kind-${index % 3}`] }));
  assert.deepEqual(unionRules(tenants), [rule({ resources: ['kind-0', 'kind-1', 'kind-2', 'pods'] })]);
  assert.deepEqual(unionRules([rule({}), rule({ resources: ['*/*'] }), rule({ resources: ['pods/log', '*'] })]), [
    rule({ resources: ['*/*'] }),
  ]);
  const operations = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'].map((operation) => rule({ operations: [operation] }));
  assert.deepEqual(unionRules(operations), [rule({ operations: ['*'] })]);
  assert.deepEqual(unionRules([rule({ scope: 'Cluster' }), rule({ scope: 'Namespaced' })]), [rule({})]);
  assert.deepEqual(unionRules([rule({ apiGroups: ['apps'], apiVersions: ['v2'] }), rule({})]).length, 2);
});

test('rules that match nothing are omitted', () => {
  assert.deepEqual(unionRules([rule({ operations: [] }), rule({ scope: 'Other' })]), []);
  assert.equal(new RuleSet([]).covers(rule({ resources: [] })), true);
});

test('a union covers its rules', () => {
  const random = randomOf(10);
  for (let round = 0; round < ROUNDS; round++) {
    const rules = random.rules(6);
    const set = new RuleSet(unionRules(rules));
    assert.ok(rules.every((one) => set.covers(one)));
  }
});

test('rules cover another exactly if no request matches only the other', () => {
  const random = randomOf(11);
  let covered = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const rules = random.rules(5);
    const other = random.rule();
    // They are never namespaced, whatever a rule's scope; `covers` does not use that.
    if (other.resources.includes('namespaces')) {
      continue;
    }
    const isCovered = random.everyRequest().every((request) => !isAny([other], request) || isAny(rules, request));
    assert.equal(new RuleSet(rules).covers(other), isCovered, JSON.stringify({ rules, other }));
    covered += isCovered ? 1 : 0;
  }
  assert.ok(covered > 20 && covered < ROUNDS - 20, String(covered));
});

test('thousands of rules with common values are united in acceptable time', () => {
  const rules = Array.from({ length: 3_500 }, (_, index) =>
    rule({ apiGroups: ['', `group-${index}`], apiVersions: ['v1', `v${index}`], resources: [`kind-${index}`, 'pods'] }),
  );
  assert.equal(unionRules(rules).length, rules.length);
});
