import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../values/index.ts';

/** Few different values, so that random ones are often equal; two are the same quantity. */
const PLAIN: readonly JsonValue[] = [true, 1, 2, 'a', 'b', 'c', '0.1', '100m'];
/** Zero values, and values whose text in Go is also that of another value. */
const AMBIGUOUS: readonly JsonValue[] = [null, false, 0, {}, [], '', '1', 'true', '<nil>', '[a]', [''], ['a']];
const FIELDS = ['name', 'a', 'b', 'c'];

function valuesOf(scalars: readonly JsonValue[]): fc.Arbitrary<JsonValue> {
  const { value } = fc.letrec<{ value: JsonValue; item: JsonValue }>((tie) => {
    const leaf = fc.constantFrom(...scalars);
    const map = fc.dictionary(fc.constantFrom(...FIELDS), tie('value'), {
      minKeys: 1,
      maxKeys: 3,
      noNullPrototype: true,
    });
    const list = fc.array(tie('item'), { minLength: 1, maxLength: 6 });
    return {
      item: fc.oneof({ depthSize: 'small', maxDepth: 4 }, leaf, map),
      value: fc.oneof({ depthSize: 'small', maxDepth: 4 }, leaf, list, map),
    };
  });
  return value;
}

/** Random JSON values. */
export function jsonValues(): fc.Arbitrary<JsonValue> {
  return valuesOf([...PLAIN, ...AMBIGUOUS]);
}

/**
 * Random JSON objects whose values are neither zero nor ambiguous as texts. With such values OCM's algorithm may match the
 * items of lists without keys differently each time.
 */
export function jsonObjects(): fc.Arbitrary<JsonObject> {
  return fc.dictionary(fc.constantFrom(...FIELDS), valuesOf(PLAIN), { maxKeys: 4, noNullPrototype: true });
}
