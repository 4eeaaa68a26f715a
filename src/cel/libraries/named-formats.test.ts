import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isNamespaceName, isServiceAccountName, NAMED_FORMATS } from './named-formats.ts';

function problems(name: string, text: string): readonly string[] {
  const format = NAMED_FORMATS.get(name);
  assert.ok(format !== undefined, name);
  return format.validate(text);
}

describe('formats', () => {
  test('report all errors', () => {
    assert.equal(problems('dns1123Label', `${'a'.repeat(64)}.b`).length, 2);
    assert.deepEqual(problems('qualifiedName', '/'), [
      'prefix part must be non-empty',
      'name part must be non-empty',
      ...problems('qualifiedName', '').slice(1),
    ]);
  });

  test('are validated in linear time', () => {
    const long = `${'a-'.repeat(200_000)}!`;
    for (const [name, format] of NAMED_FORMATS) {
      assert.ok(format.validate(long).length > 0, name);
    }
  });

  test('of dates follow the calendar', () => {
    assert.deepEqual(problems('date', '2024-02-29'), []);
    assert.equal(problems('date', '1900-02-29').length, 1);
    assert.deepEqual(problems('datetime', '2024-02-29t23:59:59.5z'), []);
    assert.equal(problems('datetime', '2024-02-29T24:00:00Z').length, 1);
  });
});

test('names of namespaces contain no dots, those of service accounts may', () => {
  assert.deepEqual([isNamespaceName('a.b'), isServiceAccountName('a.b')], [false, true]);
});
