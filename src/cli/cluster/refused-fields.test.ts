import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusedFields } from './refused-fields.ts';

describe('fields that API servers refuse', () => {
  for (const [message, expected] of [
    ['strict decoding error: unknown field "spec.modul", unknown field "spec.x[0].y"', ['spec.modul', 'spec.x[0].y']],
    [
      'failed to create typed patch object (/cell; policies.kubewarden.io/v1, Kind=ClusterAdmissionPolicy): .spec.modul: field not declared in schema',
      ['spec.modul'],
    ],
    ['errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema', ['spec.a', 'spec.b']],
    ['no matches for kind', []],
  ] as const) {
    it(`are named in ${JSON.stringify(message)}`, () => {
      assert.deepEqual(
        refusedFields({ message, details: undefined }),
        expected.map((field) => ({ field, isUnknown: true })),
      );
    });
  }

  it('are those of the causes', () => {
    const causes = [{ field: 'spec.module', message: 'Required value' }, { field: '<nil>' }, {}];
    assert.deepEqual(refusedFields({ message: '', details: { causes } }), [{ field: 'spec.module', isUnknown: false }]);
  });
});
