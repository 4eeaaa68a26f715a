import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_ERROR_CHARACTERS } from '../field-error.ts';
import type { KubernetesObject, ObjectMeta } from '../kubernetes-object.ts';
import { fieldManagerErrors, metadataErrors } from './metadata-validation.ts';
import type { MetadataRules } from './metadata-validation.ts';

const objectWith = (metadata: object): KubernetesObject => ({ apiVersion: 'v1', kind: 'Thing', metadata });

const texts = (metadata: object, rules: Partial<MetadataRules> = {}, old?: object): readonly string[] =>
  metadataErrors(
    objectWith(metadata),
    { namespaced: false, ...rules },
    old === undefined ? undefined : objectWith(old),
  ).map(({ field, message }) => `${field}: ${message}`);

describe('metadata of new objects', () => {
  it('may have more mistakes than a call may have arguments', () => {
    const managedFields = Array.from({ length: 200_000 }, () => ({ operation: 'Update', fieldsType: 'x' }));
    const errors = texts({ name: 'a', managedFields });
    assert.ok(errors.length > 1_000);
    assert.ok(errors.join('').length < 2 * MAX_ERROR_CHARACTERS);
  });

  it('report a repeated mistake once, however large it is', () => {
    const owner = { apiVersion: 'v1', kind: 'K', name: 'a'.repeat(100), uid: 'u', controller: true };
    const errors = texts({ name: 'a', ownerReferences: Array.from({ length: 5_000 }, () => owner) });
    assert.equal(errors.length, 2);
    assert.match(errors[1] ?? '', /Too many: \d+ more errors/u);
    assert.equal(fieldManagerErrors('\u0001'.repeat(1_000_000), 'm').length, 2 + 128);
  });

  it('need a name, and a namespace for namespaced kinds', () => {
    assert.deepEqual(texts({}), ['metadata.name: Required value: name or generateName is required']);
    assert.deepEqual(texts({ name: 'a' }, { namespaced: true }), ['metadata.namespace: Required value']);
    assert.deepEqual(texts({ name: 'a', namespace: 'b' }), ['metadata.namespace: Forbidden: not allowed on this type']);
    assert.deepEqual(texts({ name: 'a.b', namespace: 'b' }, { namespaced: true }), []);
  });

  it('have names that follow the rule of their kind', () => {
    const isRight = (name: string, nameRule: NonNullable<MetadataRules['nameRule']>): boolean =>
      texts({ name }, { nameRule }).length === 0;
    assert.deepEqual(
      ['a.b', '1a', 'A:b', '..', 'a/b', 'a-'].map((name) => [
        isRight(name, 'dns-subdomain'),
        isRight(name, 'dns-label'),
        isRight(name, 'dns-label-1035'),
        isRight(name, 'path-segment'),
      ]),
      [
        [true, false, false, true],
        [true, true, false, true],
        [false, false, false, true],
        [false, false, false, false],
        [false, false, false, false],
        [false, false, false, true],
      ],
    );
    assert.deepEqual(texts({ name: 'a.b' }, { nameRule: 'dns-label' }), [
      'metadata.name: Invalid value: "a.b": must not contain dots',
    ]);
  });

  it('may have a dash at the end of generateName', () => {
    assert.deepEqual(texts({ name: 'web-abcde', generateName: 'web-' }), []);
    assert.match(texts({ name: 'a', generateName: 'web_' }).join(), /^metadata\.generateName: Invalid value: "web_"/u);
  });

  it('are limited in their annotations', () => {
    assert.deepEqual(texts({ name: 'a', annotations: { a: 'x'.repeat(262_143) } }), []);
    assert.deepEqual(texts({ name: 'a', annotations: { a: 'x'.repeat(262_144) } }), [
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    ]);
  });

  it('of another shape are ignored', () => {
    const odd = {
      name: 'a',
      labels: ['x'],
      annotations: { a: 1 },
      finalizers: 'b',
      ownerReferences: [1],
      managedFields: {},
    };
    assert.deepEqual(texts(odd), []);
    // A valid label, and one with an invalid name.
    assert.equal(texts(JSON.parse('{"name":"a","labels":{"__proto__":"x"}}')).length, 1);
  });
});

describe('finalizers of kinds of the core group', () => {
  it("have a domain unless they are Kubernetes' own", () => {
    const finalizers = ['kubernetes', 'example.com/a', 'x'];
    assert.deepEqual(texts({ name: 'a', finalizers }, { group: '', origin: 'builtin' }), [
      'metadata.finalizers[2]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified',
    ]);
    assert.deepEqual(texts({ name: 'a', finalizers }, { group: 'example.com', origin: 'custom' }), []);
  });
});

describe('metadata of changed objects', () => {
  const old: ObjectMeta = {
    name: 'a',
    uid: 'u',
    resourceVersion: '1',
    generation: 2,
    creationTimestamp: '2026-01-01T00:00:00Z',
  };

  it('keep immutable fields', () => {
    assert.deepEqual(texts(old, {}, old), []);
    assert.deepEqual(
      texts({ ...old, name: 'b', uid: 'v', creationTimestamp: '2026-01-02T00:00:00Z', generation: 1 }, {}, old),
      [
        'metadata.generation: Invalid value: 1: must not be decremented',
        'metadata.name: Invalid value: "b": field is immutable',
        'metadata.uid: Invalid value: "v": field is immutable',
        'metadata.creationTimestamp: Invalid value: "2026-01-02T00:00:00Z": field is immutable',
      ],
    );
  });

  it('keep generateName', () => {
    const { resourceVersion: _version, ...without } = old;
    assert.deepEqual(texts(without, {}, old), [
      'metadata.resourceVersion: Invalid value: "": must be specified for an update',
    ]);
  });

  it('cannot get finalizers during deletion', () => {
    const deleted = { ...old, deletionTimestamp: '2026-01-03T00:00:00Z', finalizers: ['a/b'] };
    assert.deepEqual(texts({ ...deleted, finalizers: [] }, {}, deleted), []);
    assert.deepEqual(texts({ ...deleted, finalizers: ['a/b', 'c/d'] }, {}, deleted), [
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d"}',
    ]);
  });
});

describe('names of field managers', () => {
  it('are short and printable', () => {
    assert.deepEqual(fieldManagerErrors('kubectl', 'fieldManager'), []);
    assert.deepEqual(
      [...fieldManagerErrors('é\n', 'fieldManager'), ...fieldManagerErrors('x'.repeat(129), 'fieldManager')].map(
        ({ message }) => message,
      ),
      ['Invalid value: "é\\n": invalid character U+000A (at position 2)', 'Too long: may not be more than 128 bytes'],
    );
  });
});
