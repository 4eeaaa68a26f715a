import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { load } from 'js-yaml';
import { compareStrings } from '../../go/index.ts';
import { isJsonObject, valueAt } from '../../values/index.ts';
import { reportDefinitions } from './open-reports.ts';

const PUBLISHED = new URL('../../../test/fixtures/openreports/report-fields.yaml', import.meta.url);

/** A schema without texts, in an order that does not count. */
function structure(schema: unknown): unknown {
  if (!isJsonObject(schema)) {
    return Array.isArray(schema) ? schema.map(String).toSorted(compareStrings) : schema;
  }
  const isProperties = !('type' in schema) || isJsonObject(schema['type']);
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key]) => isProperties || key !== 'description')
      .map(([key, value]) => [key, structure(value)]),
  );
}

it('the definitions of OpenReports have the published fields and types', () => {
  const published = structure(load(readFileSync(PUBLISHED, 'utf8')));
  for (const definition of reportDefinitions()) {
    const [version] = valueAt(definition['spec'], 'versions') as readonly object[];
    assert.deepEqual(structure(valueAt(version, 'schema', 'openAPIV3Schema')), published);
  }
});
