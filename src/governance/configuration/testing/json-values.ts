import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../values/index.ts';

/** Few different values, so that random ones are often equal: also quantities, zero values and look-alikes. */
const SCALARS: readonly JsonValue[] = [
  null,
  true,
  false,
  0,
  1,
  2,
  '',
  '1',
  'true',
  'a',
  'b',
  '0.1',
  '100m',
  '<nil>',
  '[a]',
];
const FIELDS = ['name', 'a', 'b', 'c'];

const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true, maxDepth: 4 },
    fc.constantFrom(...SCALARS),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(fc.constantFrom(...FIELDS), tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));

/** Random JSON values. */
export function jsonValues(): fc.Arbitrary<JsonValue> {
  return fc.oneof(value, fc.array(value, { maxLength: 6 }));
}

/** Random JSON objects. */
export function jsonObjects(): fc.Arbitrary<JsonObject> {
  return fc.dictionary(fc.constantFrom(...FIELDS), jsonValues(), { maxKeys: 4, noNullPrototype: true });
}
