import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { KubernetesObject, MutableObject } from '../kubernetes-object.ts';
import { withObjectMeta } from '../object-meta-schema.ts';
import type { Schema } from '../schema.ts';
import { ObjectSchema } from './object-schema.ts';

const schemaOf = (spec: Schema): ObjectSchema =>
  new ObjectSchema(withObjectMeta({ type: 'object', properties: { spec } }));

const objectOf = (spec: unknown): KubernetesObject & MutableObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name: 'a' },
  spec,
});

const texts = (schema: ObjectSchema, spec: unknown, old?: unknown): readonly string[] =>
  schema
    .validate(objectOf(spec), old === undefined ? undefined : objectOf(old))
    .map(({ field, message }) => `${field}: ${message}`);

describe('defaults', () => {
  const schema = schemaOf({
    type: 'object',
    default: {},
    properties: {
      mode: { type: 'string', default: 'protect' },
      free: { type: 'string', nullable: true, default: 'x' },
      gone: { type: 'string' },
      rules: { type: 'array', items: { type: 'object', properties: { scope: { type: 'string', default: '*' } } } },
      entries: {
        type: 'object',
        additionalProperties: { type: 'object', properties: { n: { type: 'integer', default: 1 } } },
      },
    },
  });
  const filled = (spec: unknown): unknown => {
    const object = objectOf(spec);
    if (spec === undefined) {
      delete object['spec'];
    }
    schema.applyDefaults(object);
    return object['spec'];
  };

  it('set missing fields, at every level', () => {
    assert.deepEqual(filled(undefined), { mode: 'protect', free: 'x' });
    assert.deepEqual(filled({ free: 'y', rules: [{}, { scope: 'a' }], entries: { a: {} } }), {
      mode: 'protect',
      free: 'y',
      rules: [{ scope: '*' }, { scope: 'a' }],
      entries: { a: { n: 1 } },
    });
  });

  it('replace disallowed nulls, and remove those without a default', () => {
    assert.deepEqual(filled({ mode: null, free: null, gone: null }), { mode: 'protect', free: null });
  });

  it('are copies', () => {
    const [one, two] = [filled(undefined), filled(undefined)];
    assert.notEqual(one, two);
  });
});

describe('unknown fields', () => {
  const schema = schemaOf({
    type: 'object',
    properties: {
      known: { type: 'string' },
      list: { type: 'array', items: { type: 'object', properties: { a: { type: 'string' } } } },
      settings: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { typed: { type: 'object' } },
      },
      map: { type: 'object', additionalProperties: { type: 'object', properties: { a: { type: 'string' } } } },
      pod: {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        properties: { spec: { type: 'object' } },
      },
    },
  });
  const spec = {
    known: 'a',
    foo: 1,
    list: [{ a: '', b: 1 }],
    settings: { any: { thing: 1 }, typed: { lost: 1 } },
    map: { k: { a: '', z: 1 } },
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', odd: 1 }, spec: {}, other: 1 },
  };
  const unknown = [
    'metadata.strange',
    'spec.foo',
    'spec.list[0].b',
    'spec.map.k.z',
    'spec.pod.metadata.odd',
    'spec.pod.other',
    'spec.settings.typed.lost',
    'status',
  ];
  const given = (): KubernetesObject & MutableObject => ({
    ...objectOf(structuredClone(spec)),
    metadata: { name: 'a', strange: true },
    status: {},
  });

  it('are named', () => {
    assert.deepEqual(schema.unknownFields(given()), unknown);
  });

  it('are removed, and no others', () => {
    const object = given();
    assert.deepEqual(schema.prune(object), unknown);
    assert.deepEqual(schema.unknownFields(object), []);
    assert.deepEqual(object['spec'], {
      known: 'a',
      list: [{ a: '' }],
      settings: { any: { thing: 1 }, typed: {} },
      map: { k: { a: '' } },
      pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: {} },
    });
  });

  it('with names of Object.prototype are unknown fields as well', () => {
    const object = JSON.parse(
      '{"apiVersion":"v1","kind":"T","metadata":{},"spec":{"__proto__":{"a":1},"constructor":1}}',
    );
    assert.deepEqual(schema.unknownFields(object), ['spec.__proto__', 'spec.constructor']);
    schema.prune(object);
    assert.deepEqual(Object.keys(object.spec), []);
  });
});

describe('validation', () => {
  it('has messages of API servers', () => {
    const schema = schemaOf({
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', minLength: 2, maxLength: 3, pattern: '^[a-z]+$' },
        count: { type: 'integer', minimum: 1, maximum: 3 },
        port: { 'x-kubernetes-int-or-string': true },
        mode: { type: 'string', enum: ['a', 'b'] },
      },
    });
    assert.deepEqual(texts(schema, {}), ['spec.name: Required value']);
    assert.deepEqual(texts(schema, { name: 'abcd', count: 4, port: true, mode: 'c' }), [
      'spec.name: Too long: may not be more than 3 bytes',
      'spec.count: Invalid value: 4: spec.count in body should be less than or equal to 3',
      'spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
      'spec.mode: Unsupported value: "c": supported values: "a", "b"',
    ]);
    assert.deepEqual(texts(schema, { name: 'AB', count: 1.5 }), [
      `spec.name: Invalid value: "AB": spec.name in body should match '^[a-z]+$'`,
      'spec.count: Invalid value: "number": spec.count in body must be of type integer: "number"',
    ]);
  });

  it('ignores unchanged mistakes in an update', () => {
    const schema = schemaOf({
      type: 'object',
      properties: { a: { type: 'string', maxLength: 2 }, b: { type: 'string', maxLength: 2 } },
    });
    assert.deepEqual(texts(schema, { a: 'long', b: 'new long' }, { a: 'long', b: 'x' }), [
      'spec.b: Too long: may not be more than 2 bytes',
    ]);
  });

  it('matches patterns in linear time', () => {
    const schema = schemaOf({ type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } });
    assert.equal(texts(schema, { a: `${'a'.repeat(50_000)}!` }).length, 1);
  });

  it('refuses objects that are nested too deep', () => {
    const properties: Record<string, Schema> = {};
    const tree: Schema = { type: 'object', properties };
    properties['child'] = tree;
    let spec: object = {};
    for (let level = 0; level < 5_000; level += 1) {
      spec = { child: spec };
    }
    const schema = schemaOf(tree);
    const object = objectOf(spec);
    schema.applyDefaults(object);
    schema.prune(object);
    assert.match(
      schema
        .validate(object, object)
        .map(({ message }) => message)
        .join(''),
      /nested more than 256 levels deep/u,
    );
  });

  it('never throws', () => {
    const schema = schemaOf({
      type: 'object',
      properties: {
        a: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k'],
          items: { type: 'object', properties: { k: { type: 'string' } } },
        },
        b: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
      },
      'x-kubernetes-validations': [{ rule: 'self.a.all(x, x.k != oldSelf.a[0].k)' }],
    });
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (spec, old) => {
        const object = objectOf(spec);
        schema.applyDefaults(object);
        schema.prune(object);
        schema.validate(object, objectOf(old));
      }),
      { numRuns: 300 },
    );
  });
});

describe('rules', () => {
  const schema = schemaOf({
    type: 'object',
    properties: {
      server: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'is immutable' }] },
      least: { type: 'integer' },
      most: { type: 'integer' },
      items: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: {
          type: 'object',
          required: ['name'],
          properties: { name: { type: 'string' }, size: { type: 'integer' } },
          'x-kubernetes-validations': [
            { rule: 'self.size >= oldSelf.size', messageExpression: '"shrinks to " + string(self.size)' },
          ],
        },
      },
      weight: { type: 'number' },
      since: { type: 'string', format: 'date-time' },
      namespace: { type: 'string' },
    },
    'x-kubernetes-validations': [
      {
        rule: '!has(self.least) || !has(self.most) || self.least <= self.most',
        fieldPath: '.least',
        reason: 'FieldValueForbidden',
      },
      { rule: '!has(self.weight) || self.weight * 2.0 < 10.0', message: 'too heavy' },
      { rule: `!has(self.since) || self.since < timestamp('2030-01-01T00:00:00Z')`, message: 'too late' },
      { rule: `!has(self.__namespace__) || self.__namespace__ != 'x'`, message: 'not x' },
    ],
  });

  it('report their field and reason', () => {
    assert.deepEqual(texts(schema, { least: 2, most: 1 }), [
      'spec.least: Forbidden: failed rule: !has(self.least) || !has(self.most) || self.least <= self.most',
    ]);
  });

  it('get values of the schema’s types', () => {
    assert.deepEqual(texts(schema, { weight: 5, since: '2031-01-01T00:00:00Z', namespace: 'x' }), [
      'spec: Invalid value: "object": too heavy',
      'spec: Invalid value: "object": too late',
      'spec: Invalid value: "object": not x',
    ]);
    assert.deepEqual(texts(schema, { weight: 4, since: '2021-01-01T00:00:00.5Z', namespace: 'y' }), []);
  });

  it('compare with old values, list elements by their keys', () => {
    assert.deepEqual(texts(schema, { server: 'b' }), []);
    assert.deepEqual(texts(schema, { server: 'b' }, { server: 'a' }), [
      'spec.server: Invalid value: "string": is immutable',
    ]);
    assert.deepEqual(
      texts(
        schema,
        {
          items: [
            { name: 'b', size: 1 },
            { name: 'a', size: 5 },
          ],
        },
        {
          items: [
            { name: 'a', size: 4 },
            { name: 'b', size: 2 },
          ],
        },
      ),
      ['spec.items[0]: Invalid value: "object": shrinks to 1'],
    );
  });

  it('are not run on values of a wrong type', () => {
    assert.match(texts(schema, { least: 'a' }).join('\n'), /some validation rules were not checked/u);
  });
});
