import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WatchedChange, WatchedObject } from '../../evaluation/index.ts';
import { parametersFingerprint } from './parameters-fingerprint.ts';

const UID = 'example.com/uid';
const ofNamespaces = (...objects: readonly WatchedObject[]): WatchedChange => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  isAll: true,
  objects,
});
const namespace = (name: string, uid: string | null, labels: object = {}): WatchedObject => [
  { name },
  JSON.stringify({ metadata: { labels, annotations: { [UID]: uid, 'example.com/other': 'x' } } }),
];
const ofProfiles = (...objects: readonly WatchedObject[]): WatchedChange => ({
  apiVersion: 'example.com/v1',
  kind: 'Profile',
  isAll: true,
  objects,
});
const BY_ANNOTATION = {
  parameters: { from: { namespace: { annotations: [UID] } }, settingsExpression: "{'a': params}" },
};
const BY_OBJECT = {
  parameters: {
    from: { resource: { apiVersion: 'example.com/v1', kind: 'Profile', name: 'profile' } },
    settingsExpression: "{'a': params}",
  },
};

describe('the fingerprint of parameters', () => {
  it('is that of the listed keys, in any order of the namespaces', () => {
    const one = parametersFingerprint(BY_ANNOTATION, undefined, [
      ofNamespaces(namespace('a', '1'), namespace('b', '2'), namespace('c', null)),
    ]);
    const others = [namespace('b', '2', { x: 'y' }), namespace('d', null), namespace('a', '1')];
    assert.equal(parametersFingerprint(BY_ANNOTATION, undefined, [ofNamespaces(...others)]), one);
    for (const changed of [namespace('a', '3'), namespace('a', null), namespace('e', '1')]) {
      const objects = [namespace('b', '2'), changed];
      assert.notEqual(parametersFingerprint(BY_ANNOTATION, undefined, [ofNamespaces(...objects)]), one);
    }
  });

  it('is unknown while an annotation is not watched', () => {
    const bare: WatchedObject = [{ name: 'a' }, JSON.stringify({ metadata: { labels: {} } })];
    assert.equal(parametersFingerprint(BY_ANNOTATION, undefined, [ofNamespaces(bare)]), undefined);
  });

  it('counts labels where the expression may read them', () => {
    const spec = { parameters: { ...BY_OBJECT.parameters, settingsExpression: 'namespaceObject.metadata.labels' } };
    const [one, other] = ['x', 'y'].map((label) =>
      parametersFingerprint(spec, undefined, [ofNamespaces(namespace('a', null, { label }))]),
    );
    assert.notEqual(one, other);
  });

  it('is that of objects with the name, also of those that are too large', () => {
    const objects = (...rest: readonly WatchedObject[]): WatchedChange[] => [
      ofProfiles([{ namespace: 'a', name: 'profile' }, '{}'], ...rest),
    ];
    const one = parametersFingerprint(BY_OBJECT, undefined, objects());
    const absent: WatchedObject = [{ namespace: 'b', name: 'profile' }, undefined, { state: 'absent' }];
    const other: WatchedObject = [{ namespace: 'b', name: 'other' }, '{}'];
    assert.equal(parametersFingerprint(BY_OBJECT, undefined, objects(absent, other)), one);
    const large: WatchedObject = [
      { namespace: 'b', name: 'profile' },
      undefined,
      { state: 'unreadable', reason: 'too large' },
    ];
    assert.notEqual(parametersFingerprint(BY_OBJECT, undefined, objects(large)), one);
  });

  it('is that of its own namespace for a policy of a namespace', () => {
    const objects = (text: string): WatchedChange[] => [
      ofProfiles([{ namespace: 'a', name: 'profile' }, '{}'], [{ namespace: 'b', name: 'profile' }, text]),
    ];
    assert.equal(
      parametersFingerprint(BY_OBJECT, 'a', objects('{}')),
      parametersFingerprint(BY_OBJECT, 'a', objects('[]')),
    );
    assert.notEqual(
      parametersFingerprint(BY_OBJECT, 'b', objects('{}')),
      parametersFingerprint(BY_OBJECT, 'b', objects('[]')),
    );
  });

  it('is that of all members of a group', () => {
    const spec = { policies: { one: BY_ANNOTATION, two: BY_OBJECT } };
    const objects = (uid: string, text: string): WatchedChange[] => [
      ofNamespaces(namespace('a', uid)),
      ofProfiles([{ namespace: 'a', name: 'profile' }, text]),
    ];
    const all = [objects('1', '{}'), objects('2', '{}'), objects('1', '[]')];
    assert.equal(new Set(all.map((one) => parametersFingerprint(spec, undefined, one))).size, 3);
  });
});
