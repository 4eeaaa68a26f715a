import type { Schema } from '../../../resources/index.ts';

/** A schema for the schemas in CustomResourceDefinitions. It declares only the types of keywords. */
export const SCHEMA_OF_SCHEMAS: Schema = makeSchemaOfSchemas();

function makeSchemaOfSchemas(): Schema {
  const text: Schema = { type: 'string' };
  const number: Schema = { type: 'number' };
  const integer: Schema = { type: 'integer' };
  const flag: Schema = { type: 'boolean' };
  const texts: Schema = { type: 'array', items: text };
  const properties: Record<string, Schema> = {};
  const schema: Schema = { type: 'object', properties };
  const schemas: Schema = { type: 'array', items: schema };
  const byName: Schema = { type: 'object', additionalProperties: schema };
  Object.assign(properties, {
    type: text,
    format: text,
    title: text,
    description: text,
    properties: byName,
    required: texts,
    items: schema,
    additionalProperties: { anyOf: [flag, schema] },
    nullable: flag,
    enum: { type: 'array' },
    pattern: text,
    minLength: integer,
    maxLength: integer,
    minimum: number,
    maximum: number,
    exclusiveMinimum: flag,
    exclusiveMaximum: flag,
    multipleOf: number,
    minItems: integer,
    maxItems: integer,
    uniqueItems: flag,
    minProperties: integer,
    maxProperties: integer,
    allOf: schemas,
    anyOf: schemas,
    oneOf: schemas,
    not: schema,
    'x-kubernetes-preserve-unknown-fields': flag,
    'x-kubernetes-embedded-resource': flag,
    'x-kubernetes-int-or-string': flag,
    'x-kubernetes-list-type': text,
    'x-kubernetes-list-map-keys': texts,
    'x-kubernetes-map-type': text,
    'x-kubernetes-validations': {
      type: 'array',
      items: {
        type: 'object',
        required: ['rule'],
        properties: {
          rule: text,
          message: text,
          messageExpression: text,
          reason: text,
          fieldPath: text,
          optionalOldSelf: flag,
        },
      },
    },
  });
  return schema;
}
