import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { diffRecord, isUnchanged, objectDiff, statusDiff } from './object-diff.ts';

function object(fields: JsonObject, metadata: JsonObject = {}): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', namespace: 'ns', ...metadata }, ...fields };
}

/** An object of one field: its YAML has as many lines as the field, after the metadata. */
function cities(value: JsonValue, others: JsonObject = {}): KubernetesObject {
  return { apiVersion: 'v1', kind: 'City', metadata: {}, zones: value, ...others };
}

interface Case {
  readonly when: string;
  readonly live: KubernetesObject;
  readonly updated: KubernetesObject;
  readonly hunk: readonly string[];
}

const CONTEXT = [' apiVersion: v1', ' kind: City', ' metadata: {}'];

const CASES: readonly Case[] = [
  {
    when: 'a field becomes a map',
    live: cities({}),
    updated: cities({ raleigh: {} }),
    hunk: ['@@ -1,5 +1,6 @@', ...CONTEXT, '-zones: {}', '+zones:', '+  raleigh: {}'],
  },
  {
    when: 'a field is added',
    live: cities({}),
    updated: cities({}, { zzz: {} }),
    hunk: ['@@ -1,5 +1,6 @@', ...CONTEXT, ' zones: {}', '+zzz: {}'],
  },
  {
    when: 'an item is added',
    live: cities(['a']),
    updated: cities(['a', 'b']),
    hunk: ['@@ -1,6 +1,7 @@', ...CONTEXT, ' zones:', ' - a', '+- b'],
  },
  {
    when: 'an item is removed',
    live: cities(['a', 'b']),
    updated: cities(['a']),
    hunk: ['@@ -1,7 +1,6 @@', ...CONTEXT, ' zones:', ' - a', '-- b'],
  },
  {
    when: 'the change is more than five lines away from both ends',
    live: cities(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']),
    updated: cities(['a', 'b', 'c', 'd', 'X', 'f', 'g', 'h', 'i']),
    hunk: [
      '@@ -4,11 +4,11 @@',
      ' zones:',
      ' - a',
      ' - b',
      ' - c',
      ' - d',
      '-- e',
      '+- X',
      ' - f',
      ' - g',
      ' - h',
      ' - i',
    ],
  },
];

describe('the difference of two objects', () => {
  for (const { when, live, updated, hunk } of CASES) {
    it(`is unified when ${when}`, () => {
      // OCM's differences have an empty line after the object.
      assert.equal(objectDiff(live, updated), ['---  : existing', '+++  : updated', ...hunk, ' ', ''].join('\n'));
    });
  }

  it('is empty for what changes although nobody changes the object', () => {
    const live = object({ a: 1 }, { generation: 1, managedFields: [{ manager: 'x' }] });
    const updated = object(
      { a: 1 },
      { generation: 2, annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' } },
    );
    assert.equal(objectDiff(live, updated), '');
    assert.equal(isUnchanged(live, updated), true);
    assert.equal(isUnchanged(live, object({ a: 2 })), false);
  });

  it('names cluster-scoped objects without a namespace', () => {
    const node = (a: number): KubernetesObject => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, a });
    assert.match(objectDiff(node(1), node(2)), /^--- n : existing\n\+\+\+ n : updated\n/);
  });

  it('is truncated after 50 lines', () => {
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`m${index}`, 'x']));
    const lines = objectDiff(object({}), object(many)).split('\n');
    assert.match(lines[0] ?? '', /^# Truncated: showing 50\/\d+ diff lines:$/);
    assert.equal(lines.length, 54);
    assert.equal(objectDiff(object({}), object(many), { isFull: true }).startsWith('--- '), true);
  });

  it('is not computed for objects with few lines in common', () => {
    const many = (of: string): JsonObject =>
      Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`${of}${index}`, 1]));
    assert.equal(objectDiff(object(many('a')), object(many('b'))), '# The objects differ in more than 1000 lines.');
  });
});

describe('what is recorded of a difference', () => {
  for (const [apiVersion, kind, record] of [
    ['v1', 'Pod', 'InStatus'],
    ['v1', 'ConfigMap', 'Censored'],
    ['v1', 'Secret', 'Censored'],
    ['example.com/v1', 'Secret', 'InStatus'],
    ['oauth.openshift.io/v1', 'OAuthAccessToken', 'Censored'],
    ['oauth.openshift.io/v1', 'OAuthAuthorizeToken', 'Censored'],
    ['oauth.openshift.io/v1', 'OAuthAuthorizeTokens', 'Censored'],
    ['route.openshift.io/v1', 'Route', 'Censored'],
  ] as const) {
    it(`of a ${kind} of ${apiVersion} is ${record} by default`, () => {
      assert.equal(diffRecord(undefined, { apiVersion, kind }, false), record);
      assert.equal(diffRecord('InStatus', { apiVersion, kind }, false), 'InStatus');
      assert.equal(diffRecord('None', { apiVersion, kind }, true), 'None');
    });
  }

  it('is censored when template functions read secrets', () => {
    assert.equal(diffRecord(undefined, { apiVersion: 'v1', kind: 'Pod' }, true), 'Censored');
  });

  it('in the status is the difference, a note, or nothing', () => {
    const [live, updated] = [object({ a: 1 }), object({ a: 2 })];
    assert.match(statusDiff('InStatus', live, updated), /^--- ns\/x/);
    assert.match(
      statusDiff('Censored', live, updated),
      /^# The difference is redacted because it contains sensitive data\./,
    );
    assert.deepEqual([statusDiff('Log', live, updated), statusDiff('None', live, updated)], ['', '']);
  });
});
