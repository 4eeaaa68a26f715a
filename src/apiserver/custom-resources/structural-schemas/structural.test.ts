import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { checkStructural } from './structural.ts';

const texts = (spec: object): readonly string[] =>
  checkStructural({ type: 'object', properties: { spec } }, 'schema').map(
    ({ field, message }) => `${field.replace('schema.properties[spec]', '@')}: ${message}`,
  );

describe('schemas of CustomResourceDefinitions', () => {
  const cases: readonly (readonly [name: string, spec: object, errors: readonly (string | RegExp)[]])[] = [
    [
      'with every type',
      { type: 'object', properties: { a: { type: 'string' }, b: { type: 'array', items: { type: 'number' } } } },
      [],
    ],
    ['without a type', {}, ['@.type: Required value: must not be empty for specified object fields']],
    [
      'with a type in anyOf',
      { type: 'object', anyOf: [{ type: 'object' }] },
      ['@.anyOf[0].type: Forbidden: must be empty to be structural'],
    ],
    [
      'of integers or texts',
      { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
      [],
    ],
    [
      'with a pattern that is none',
      { type: 'string', pattern: '[' },
      [/^@\.pattern: Invalid value: "\[": must be a valid regular expression/u],
    ],
    ['with a default that it refuses', { type: 'string', maxLength: 1, default: 'xx' }, [/^@\.default: Too long/u]],
    [
      'with a default of unknown fields',
      { type: 'object', properties: {}, default: { a: 1 } },
      [/must not have unknown fields$/u],
    ],
    [
      'with a list without keys',
      { type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } },
      ['@.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map'],
    ],
    [
      'with a rule that does not compile',
      { type: 'object', 'x-kubernetes-validations': [{ rule: 'self.a == 1' }] },
      [/^@\.x-kubernetes-validations\[0\]\.rule: Invalid value: .*undefined field 'a'/su],
    ],
    [
      'with a rule that may cost too much',
      {
        type: 'array',
        items: { type: 'string' },
        'x-kubernetes-validations': [{ rule: 'self.all(x, self.all(y, x == y))' }],
      },
      [/estimated rule cost exceeds budget by factor of more than 100x/u, /contributed/u, /entire OpenAPIv3 schema/u],
    ],
    [
      'with an old value that cannot be told',
      {
        type: 'array',
        maxItems: 2,
        items: { type: 'string', maxLength: 9, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] },
      },
      [/oldSelf cannot be used on the uncorrelatable portion of the schema within schema\.properties\[spec\]$/u],
    ],
    [
      'with keywords of the wrong type',
      { type: 'object', properties: { a: 'text' } },
      [/must be of type object: "string"$/u],
    ],
  ];
  for (const [name, spec, errors] of cases) {
    it(`${name}: ${errors.length === 0 ? 'fine' : 'errors'}`, () => {
      const found = texts(spec);
      assert.equal(found.length, errors.length, found.join('\n'));
      for (const [index, expected] of errors.entries()) {
        assert.match(
          found[index] ?? '',
          typeof expected === 'string' ? new RegExp(`^${RegExp.escape(expected)}$`, 'u') : expected,
        );
      }
    });
  }

  it('are validated, for any value', () => {
    const keyword = fc.constantFrom(
      'type',
      'properties',
      'items',
      'anyOf',
      'not',
      'default',
      'enum',
      'x-kubernetes-validations',
      'x-kubernetes-list-type',
      'additionalProperties',
      '__proto__',
    );
    const value = fc.oneof(fc.constantFrom('object', 'array', 'string', 'map'), fc.jsonValue({ maxDepth: 3 }));
    fc.assert(
      fc.property(fc.array(fc.tuple(keyword, value)), (parts) => {
        const schema: unknown = JSON.parse(
          `{${parts.map(([name, part]) => `${JSON.stringify(name)}:${JSON.stringify(part)}`).join(',')}}`,
        );
        checkStructural({ type: 'object', properties: { spec: schema } }, 'schema');
      }),
      { numRuns: 300 },
    );
  });
});
