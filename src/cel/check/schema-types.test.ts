import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatType, SchemaTypes } from './index.ts';
import type { StructuralSchema } from './index.ts';

function typeOfField(types: SchemaTypes, struct: string, field: string): string | undefined {
  const type = types.fieldType(struct, field);
  return type === undefined ? undefined : formatType(type);
}

describe('types of schemas', () => {
  it('follow references, including recursive ones', () => {
    const definitions: Readonly<Record<string, StructuralSchema>> = {
      Props: {
        type: 'object',
        properties: {
          items: { allOf: [{ $ref: 'Props' }], default: {} },
          not: { $ref: 'Props' },
          missing: { $ref: 'Missing' },
          title: { type: 'string' },
        },
      },
    };
    const types = new SchemaTypes({ resolve: (reference) => definitions[reference] });
    types.declare('Props', { $ref: 'Props' });
    assert.deepEqual(types.fieldNames('Props'), ['items', 'not', 'title']);
    assert.equal(typeOfField(types, 'Props', 'items'), 'Props.items');
    assert.equal(typeOfField(types, 'Props.items.not.items', 'title'), 'string');
  });

  it('use plain field names on request', () => {
    const types = new SchemaTypes({ fieldNames: 'plain' });
    types.declare('A', { type: 'object', properties: { 'a-b': { type: 'integer' }, namespace: { type: 'string' } } });
    assert.deepEqual(types.fieldNames('A'), ['a-b', 'namespace']);
  });

  it('do not include values without a schema', () => {
    const types = new SchemaTypes();
    assert.equal(types.declare('A', { 'x-kubernetes-preserve-unknown-fields': true }), undefined);
    assert.equal(types.declare('B', { type: 'array' }), undefined);
    types.declare('C', {
      type: 'object',
      properties: JSON.parse('{"__proto__": {"type": "string"}}') as Record<string, StructuralSchema>,
    });
    assert.equal(types.fieldType('C', 'constructor'), undefined);
    assert.equal(types.findStruct('toString'), undefined);
  });
});
