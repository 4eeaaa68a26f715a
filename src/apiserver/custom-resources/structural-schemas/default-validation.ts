import { addErrors, invalid, isJsonObject } from '../../../resources/index.ts';
import type { FieldError, JsonValue, Schema } from '../../../resources/index.ts';
import { embeddedErrors, SchemaValidator, unknownFields } from '../../../resources/validation/index.ts';

/** Checks that the defaults in a structural schema conform to it. */
export function defaultErrors(schema: Schema, path: string): FieldError[] {
  return nodeErrors(schema, path, new SchemaValidator());
}

function nodeErrors(schema: Schema, path: string, validator: SchemaValidator): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.default !== undefined) {
    addErrors(errors, valueErrors(schema, `${path}.default`, validator));
  }
  if (schema.items !== undefined) {
    addErrors(errors, nodeErrors(schema.items, `${path}.items`, validator));
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    addErrors(errors, nodeErrors(property, `${path}.properties[${name}]`, validator));
  }
  return errors;
}

function valueErrors(schema: Schema, path: string, validator: SchemaValidator): FieldError[] {
  const value = schema.default as JsonValue;
  if (isJsonObject(value)) {
    const holder: Schema = { type: 'object', properties: { default: schema } };
    if (unknownFields({ default: value }, holder, { isRemoving: false }).length > 0) {
      return [invalid(path, value, 'must not have unknown fields')];
    }
  }
  const result = validator.validate(value, schema, '', undefined);
  const found = [...Array.from(result.problems, ({ error }) => error), ...embeddedErrors(value, schema, '')];
  return found.map((error) => ({
    ...error,
    field: error.field === '<nil>' ? path : `${path}.${error.field}`,
  }));
}
