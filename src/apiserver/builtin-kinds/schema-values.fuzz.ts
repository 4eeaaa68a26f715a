import fc from 'fast-check';
import type { Schema } from '../../resources/index.ts';

/** Deeper than any field that is validated. */
const MAX_DEPTH = 9;

/** Strings for which validation has different rules. */
const TEXTS = [
  '',
  'a',
  'Bad_Name',
  '10.0.0.1',
  '10.0.0.0/8',
  '50%',
  '1Gi',
  '-5',
  '* * * * *',
  '__proto__',
  'None',
  '/a/../b',
  'Always',
  'RollingUpdate',
  'ExternalName',
  'https://a:b@c?d#e',
  '2026-01-02T03:04:05Z',
];

/** Arbitrary values for fuzz tests of validation. Most have the types of the schema. */
export function valuesOf(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  const any = fc.oneof(
    fc.constantFrom(...TEXTS),
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.constant([]),
    fc.constant({}),
  );
  if (depth > MAX_DEPTH) {
    return any;
  }
  return fc.oneof({ arbitrary: any, weight: 1 }, { arbitrary: typed(schema, depth), weight: 12 });
}

function typed(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const { properties, items, additionalProperties } = schema;
  if (properties !== undefined) {
    const names = Object.keys(properties);
    return fc
      .subarray(names, { maxLength: Math.min(6, names.length) })
      .chain((chosen) =>
        fc.record(Object.fromEntries(chosen.map((name) => [name, valuesOf(properties[name] ?? {}, depth + 1)]))),
      );
  }
  if (items !== undefined) {
    return fc.constant(items).chain((inner) => fc.array(valuesOf(inner, depth + 1), { maxLength: 3 }));
  }
  if (typeof additionalProperties === 'object') {
    return fc.dictionary(
      fc.constantFrom('cpu', 'a', 'bad key', '__proto__', 'example.com/a'),
      valuesOf(additionalProperties, depth + 1),
      { maxKeys: 3 },
    );
  }
  if (schema.enum !== undefined) {
    return fc.constantFrom(...schema.enum);
  }
  switch (schema.type) {
    case 'integer':
      return fc.oneof(fc.integer({ min: -2, max: 100_000 }), fc.integer());
    case 'boolean':
      return fc.boolean();
    default:
      return fc.constantFrom(...TEXTS);
  }
}
