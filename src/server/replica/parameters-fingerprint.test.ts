import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WatchedChange, WatchedObject } from '../../evaluation/index.ts';
import { MAX_PARAMETERS_FINGERPRINT } from '../../resources/index.ts';
import { namespacesOfFingerprint, parametersFingerprint } from './parameters-fingerprint.ts';

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

  it('is that of the refused namespaces, which it names', () => {
    const annotated = (...uids: readonly string[]): WatchedChange[] => [
      ofNamespaces(...['a', 'b', 'c'].map((name, index) => namespace(name, uids[index] ?? null))),
    ];
    const profiles = (...texts: readonly string[]): WatchedChange[] => [
      ofProfiles(
        ...['a', 'b', 'c'].map((name, index): WatchedObject => [
          { namespace: name, name: 'profile' },
          texts[index] ?? '{}',
        ]),
      ),
    ];
    for (const [spec, objects] of [
      [BY_ANNOTATION, annotated],
      [BY_OBJECT, profiles],
    ] as const) {
      const of = (...values: readonly string[]): string | undefined =>
        parametersFingerprint(spec, undefined, objects(...values), ['c', 'a']);
      const one = of('1', '1', '1');
      assert.deepEqual(namespacesOfFingerprint(one), ['a', 'c']);
      assert.equal(of('1', '2', '1'), one);
      assert.notEqual(of('1', '1', '2'), one);
    }
  });

  it('is that of an object for the requests of all namespaces, whichever are refused', () => {
    const resource = { ...BY_OBJECT.parameters.from.resource, namespace: 'shared' };
    const spec = { parameters: { ...BY_OBJECT.parameters, from: { resource } } };
    const of = (text: string): string | undefined =>
      parametersFingerprint(spec, undefined, [ofProfiles([{ namespace: 'shared', name: 'profile' }, text])], ['a']);
    assert.notEqual(of('{}'), of('[]'));
  });

  it('fits its field, and is that of all namespaces where many are refused', () => {
    const names = Array.from({ length: 33 }, (_, index) => `n${index}`.padEnd(63, 'x'));
    const objects = [ofNamespaces(namespace('other', '1'))];
    const few = parametersFingerprint(BY_ANNOTATION, undefined, objects, names.slice(1)) ?? '';
    assert.ok(few.length <= MAX_PARAMETERS_FINGERPRINT && few.length > 2_000);
    const many = parametersFingerprint(BY_ANNOTATION, undefined, objects, names);
    assert.equal(namespacesOfFingerprint(many), undefined);
    assert.notEqual(many, parametersFingerprint(BY_ANNOTATION, undefined, [ofNamespaces()], names));
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
