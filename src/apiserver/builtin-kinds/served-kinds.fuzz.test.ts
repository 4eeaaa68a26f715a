// Decoding, defaults, validation and printing of arbitrary objects never throw.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { apiVersionOf, isJsonObject } from '../../resources/index.ts';
import type { MutableObject } from '../../resources/index.ts';
import { decodeError } from '../../resources/decoding/index.ts';
import { valuesOf } from './schema-values.fuzz.ts';
import { SERVED_KINDS } from './served-kinds.ts';

const RUNS = 20;

describe('objects of any content', () => {
  for (const definition of SERVED_KINDS) {
    it(`are handled: ${definition.kind}`, () => {
      const apiVersion = apiVersionOf(definition);
      const { kind } = definition;
      const fields = { apiVersion, kind, metadata: { name: 'a' } };
      // Through JSON, so that `__proto__` is an own property.
      const objects = valuesOf(definition.schema()).map(
        (value) => JSON.parse(JSON.stringify(isJsonObject(value) ? { ...value, ...fields } : fields)) as MutableObject,
      );
      fc.assert(
        fc.property(objects, objects, (object, old) => {
          const isReadable = decodeError(definition, object) === undefined;
          definition.applyDefaults?.(object);
          const once = structuredClone(object);
          definition.applyDefaults?.(object);
          assert.deepEqual(object, once, 'filling in again changes nothing');
          assert.ok(Array.isArray(definition.validate?.(object, old) ?? []));
          if (isReadable) {
            assert.equal(decodeError(definition, object), undefined, 'what was read is still readable');
            definition.printer.cells(object, 0);
          }
        }),
        { numRuns: RUNS },
      );
    });
  }
});
