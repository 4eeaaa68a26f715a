import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parsePolicies } from '../../engine/index.ts';
import { DeclaredKinds } from './declared-kinds.ts';
import type { TableEntry } from '../evaluation-protocol.ts';

function entries(yaml: string): TableEntry[] {
  return parsePolicies(yaml, 'policies.yml').policies.map((definition) => ({
    id: definition.id,
    definition,
    digests: {},
  }));
}

const change = (upserts: readonly TableEntry[], removals: readonly string[] = []) => ({ upserts, removals });
const NAMESPACES = { apiVersion: 'v1', kind: 'Namespace' };
const PODS = { apiVersion: 'v1', kind: 'Pod' };

describe('DeclaredKinds', () => {
  it('has each kind once that a policy or a member of a group declares, for as long as one does', () => {
    const kinds = new DeclaredKinds();
    const all = entries(`
one: {module: m, contextAwareResources: [{apiVersion: v1, kind: Namespace}]}
none: {module: m}
group:
  expression: a()
  message: refused
  policies:
    a: {module: m, contextAwareResources: [{apiVersion: v1, kind: Namespace}, {apiVersion: v1, kind: Pod}]}
`);
    assert.equal(kinds.apply(change(all)), true);
    assert.deepEqual(kinds.list(), [NAMESPACES, PODS]);
    assert.equal(kinds.apply(change([], ['none'])), false);
    assert.equal(kinds.apply(change([], ['one'])), true);
    assert.deepEqual(kinds.list(), [NAMESPACES, PODS]);
    assert.equal(kinds.apply(change([{ id: 'group', failed: { message: 'gone', failurePolicy: 'Fail' } }])), true);
    assert.deepEqual(kinds.list(), []);
  });

  it('has kinds of what is loaded beside, so that they are there when it begins to serve', () => {
    const kinds = new DeclaredKinds();
    const [one] = entries('one: {module: m, contextAwareResources: [{apiVersion: v1, kind: Pod}]}');
    assert.ok(one !== undefined && 'definition' in one);
    assert.equal(kinds.apply(change([]), new Map([['one', [one.definition]]])), true);
    assert.deepEqual(kinds.list(), [PODS]);
    assert.equal(kinds.apply(change([one]), new Map([['one', []]])), true);
    assert.deepEqual(kinds.list(), [PODS]);
    assert.equal(kinds.apply(change([]), new Map([['one', [one.definition]]])), true);
    assert.equal(kinds.apply(change([], ['one'])), true);
    assert.deepEqual(kinds.list(), []);
  });
});
